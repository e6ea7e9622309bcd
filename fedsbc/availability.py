"""Who can take part in a round, and who drops out of it: from the config and the seed alone.

    availability = build(config.availability, config.seed, config.clients.count)
    cohort = draw_cohort(availability.present(round), size, seed, round)
    silent = availability.dropouts(round)

A trace is a file of comma-separated values: one line for each stretch of rounds in which a client
can be reached, the last round included. Every client of the run has a line at least.

    client_id,first_round,last_round
    0,1,40
    0,61,100
    1,5,100
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from fedsbc.choices import choose
from fedsbc.errors import DataError
from fedsbc.options import Options, PositiveInt
from fedsbc.seeds import Stream, generator

COLUMNS = ("client_id", "first_round", "last_round")

Stretch = tuple[int, int]
"""First and last round in which a client can be reached."""


class AvailabilityOptions(Options):
    """What every kind has.

    Attributes:
        kind: subclasses narrow it to a `Literal`.
        dropout: probability that a client that was asked drops out of the round: it gets the
            request, which counts, trains nothing, and is not heard of again in this round.
    """

    kind: str
    dropout: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.0


class AlwaysOptions(AvailabilityOptions):
    """Options of `always`: every client can be asked in every round."""

    kind: Literal["always"] = "always"


class RandomOptions(AvailabilityOptions):
    """Options of `random`: drawn for each client and round.

    Attributes:
        p: probability that a client can be asked in a round.
    """

    kind: Literal["random"] = "random"
    p: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class TraceOptions(AvailabilityOptions):
    """Options of `trace`: from a file.

    Attributes:
        trace: the file.
        period: rounds after which the file begins again; null: who has no line for a round
            cannot be asked in it.
    """

    kind: Literal["trace"] = "trace"
    trace: str
    period: PositiveInt | None = None


TABLE: dict[str, type[AvailabilityOptions]] = {
    "always": AlwaysOptions,
    "random": RandomOptions,
    "trace": TraceOptions,
}
"""The kinds by their names in configs."""


def options_for(kind: str) -> type[AvailabilityOptions]:
    """Return the options class of a kind.

    Raises:
        ConfigError: no such kind; the message lists the known ones.
    """
    return choose("availability", kind, TABLE)


@dataclass(frozen=True)
class Availability:
    """Who is there in the rounds of one run.

    Attributes:
        options: the kind and its options.
        seed: of the run.
        num_clients: clients 0 to `num_clients` - 1.
        stretches: of `trace`: the rounds of each client.
    """

    options: AvailabilityOptions
    seed: int
    num_clients: int
    stretches: Mapping[int, Sequence[Stretch]] = field(default_factory=dict)

    def present(self, round: int) -> list[int]:
        """Return the clients that can be asked in a round, sorted; 1 is the first round."""
        ids = list(range(self.num_clients))
        if isinstance(self.options, RandomOptions):
            draws = generator(self.seed, Stream.AVAILABILITY, round).random(self.num_clients)
            return [i for i in ids if draws[i] < self.options.p]
        if isinstance(self.options, TraceOptions):
            period = self.options.period
            at = round if period is None else (round - 1) % period + 1
            return [i for i in ids if any(a <= at <= b for a, b in self.stretches[i])]
        return ids

    def dropouts(self, round: int) -> set[int]:
        """Return the clients that drop out of a round if they are asked in it."""
        if not self.options.dropout:
            return set()
        draws = generator(self.seed, Stream.FAILURES, round).random(self.num_clients)
        return {i for i in range(self.num_clients) if draws[i] < self.options.dropout}


def build(options: AvailabilityOptions, seed: int, num_clients: int) -> Availability:
    """Return who is there in the rounds of a run.

    Raises:
        DataError: the trace cannot be used, or lacks a client.
    """
    stretches: dict[int, list[Stretch]] = {}
    if isinstance(options, TraceOptions):
        stretches = read_trace(options.trace)
        for client_id in range(num_clients):
            if client_id not in stretches:
                raise DataError(
                    f"{options.trace}: there is no line for client {client_id}; expected one for "
                    f"each of clients 0 to {num_clients - 1}"
                )
    return Availability(options, seed, num_clients, stretches)


def read_trace(path: str | Path) -> dict[int, list[Stretch]]:
    """Read a trace file: client id -> its stretches of rounds.

    Raises:
        DataError: the file cannot be read, or a line is not one of a trace; the message says
            where.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: the trace cannot be read ({error})") from error
    columns = [name.strip() for name in lines[0]] if lines else []
    if sorted(columns) != sorted(COLUMNS):
        raise DataError(f"{path}:1: the columns are {columns}; expected {list(COLUMNS)}")
    stretches: dict[int, list[Stretch]] = {}
    for number, line in enumerate(lines[1:], start=2):
        if line:
            client_id, stretch = _stretch(f"{path}:{number}", columns, line)
            stretches.setdefault(client_id, []).append(stretch)
    return stretches


def _stretch(where: str, columns: list[str], line: list[str]) -> tuple[int, Stretch]:
    """Return a line's client and rounds."""
    try:
        given = {name: int(value) for name, value in zip(columns, line, strict=True)}
    except ValueError:
        given = {}
    if not given or given["client_id"] < 0 or not 1 <= given["first_round"] <= given["last_round"]:
        raise DataError(
            f"{where}: {','.join(line)!r} is not a stretch; expected a client id, its first round "
            "(1 and up) and its last, which is not before the first"
        )
    return given["client_id"], (given["first_round"], given["last_round"])
