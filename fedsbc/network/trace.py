"""Trace files: links that were measured, as comma-separated values.

    client_id,uplink_bit_s,downlink_bit_s,latency_s,seconds_per_step
    0,5200000,18000000,0.031,0.12
    1,310000,900000,0.120,0.45

The first line names the columns, in any order. `client_id` and `seconds_per_step` may be left
out. With `client_id` there is one row for each client of the run, and clients of other ids are
ignored; without it each client draws one of the rows from the run's seed.
"""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from fedsbc.errors import DataError

REQUIRED = ("uplink_bit_s", "downlink_bit_s", "latency_s")
OPTIONAL = ("client_id", "seconds_per_step")


@dataclass(frozen=True)
class TraceRow:
    """One measured link.

    Attributes:
        client_id: whose it is; None if the file does not say.
        uplink_bit_s: bits a second from the client to the server, above 0.
        downlink_bit_s: bits a second from the server to the client, above 0.
        latency_s: seconds one way, 0 or above.
        seconds_per_step: seconds of one local step; None if the file does not say.
    """

    client_id: int | None
    uplink_bit_s: float
    downlink_bit_s: float
    latency_s: float
    seconds_per_step: float | None


def read_trace(path: str | Path) -> list[TraceRow]:
    """Read a trace file.

    Raises:
        DataError: the file cannot be read, a column is missing or unknown, a value is not a
            number in its range, there is no row, or a client has two; the message says where.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: the trace cannot be read ({error})") from error
    columns = [name.strip() for name in lines[0]] if lines else []
    _check_columns(path, columns)
    rows = [
        _row(f"{path}:{number}", columns, line)
        for number, line in enumerate(lines[1:], start=2)
        if line
    ]
    if not rows:
        raise DataError(f"{path}: the trace has no row")
    ids = [row.client_id for row in rows if row.client_id is not None]
    twice = sorted({client_id for client_id in ids if ids.count(client_id) > 1})
    if twice:
        raise DataError(f"{path}: client {twice[0]} has more than one row; expected one")
    return rows


def _check_columns(path: str | Path, columns: list[str]) -> None:
    """Refuse a first line that does not name the columns."""
    missing = [name for name in REQUIRED if name not in columns]
    unknown = [name for name in columns if name not in REQUIRED + OPTIONAL]
    if missing or unknown or len(set(columns)) < len(columns):
        raise DataError(
            f"{path}:1: the columns are {columns}; expected {list(REQUIRED)}, each once, "
            f"and if need be {list(OPTIONAL)}"
        )


def _row(where: str, columns: list[str], line: list[str]) -> TraceRow:
    """Return one line's link."""
    if len(line) != len(columns):
        raise DataError(f"{where}: {len(line)} values; expected {len(columns)}")
    given = dict(zip(columns, line, strict=True))
    client_id = _number(where, given, "client_id") if "client_id" in given else None
    if client_id is not None and not client_id.is_integer():
        raise DataError(f"{where}: `client_id` is {given['client_id']}; expected a whole number")
    step_s = _number(where, given, "seconds_per_step") if "seconds_per_step" in given else None
    return TraceRow(
        client_id=None if client_id is None else int(client_id),
        uplink_bit_s=_number(where, given, "uplink_bit_s", above_zero=True),
        downlink_bit_s=_number(where, given, "downlink_bit_s", above_zero=True),
        latency_s=_number(where, given, "latency_s"),
        seconds_per_step=step_s,
    )


def _number(where: str, given: dict[str, str], name: str, above_zero: bool = False) -> float:
    """Return one value as a finite number in its range."""
    try:
        value = float(given[name])
    except ValueError:
        value = math.nan
    if math.isfinite(value) and (value > 0 if above_zero else value >= 0):
        return value
    expected = "above 0" if above_zero else "0 or above"
    raise DataError(f"{where}: `{name}` is {given[name]!r}; expected a number {expected}")
