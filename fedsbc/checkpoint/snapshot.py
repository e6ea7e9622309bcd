"""The server's side of a checkpoint: a snapshot in memory, and its files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsbc.files import write_arrays
from fedsbc.ledger import Ledger
from fedsbc.records import RoundRecord

ARRAYS, FACTS, LEDGER, ROUNDS = (
    "server.safetensors",
    "server.json",
    "ledger.parquet",
    "rounds.jsonl",
)


@dataclass(frozen=True)
class Snapshot:
    """The server after a closed round: all that the next round reads, without the clients' states.

    Schedules and generators are not in it: they follow from the seed and the round number.

    Attributes:
        run_id: 16 hex digits; the clients' states are keyed by it.
        round: the last closed round; 0 before the first.
        num_aborted: rounds in a row up to this one that changed nothing.
        members: what the server knows of each client, but for its node.
        layouts: hashes of the layouts of parameters and float buffers.
        arrays: `weights` and `buffers` (float32), `residual` where there is one, `state.*` of the
            downstream compressor, `history.<version>` (uint8: the payload that led to it).
        ledger: the rows so far.
        records: one record per round so far.
    """

    run_id: str
    round: int
    num_aborted: int
    members: Sequence[Mapping[str, Any]]
    layouts: tuple[str, str]
    arrays: Mapping[str, NDArray[Any]]
    ledger: Ledger
    records: Sequence[RoundRecord]


def write_snapshot(folder: Path, snapshot: Snapshot, facts: Mapping[str, Any]) -> list[str]:
    """Write the files of a snapshot to a folder and return their names.

    Args:
        folder: an existing one.
        snapshot: what to write.
        facts: what else a resume compares: `config` and `environment`, plain data.

    Raises:
        OSError: a file cannot be written.
    """
    contiguous = {name: np.asarray(array, order="C") for name, array in snapshot.arrays.items()}
    write_arrays(folder / ARRAYS, contiguous)
    snapshot.ledger.to_parquet(folder / LEDGER)
    lines = [json.dumps(record.to_dict(), allow_nan=False) + "\n" for record in snapshot.records]
    (folder / ROUNDS).write_text("".join(lines), encoding="utf-8", newline="\n")
    plain = {
        "run_id": snapshot.run_id,
        "round": snapshot.round,
        "num_aborted": snapshot.num_aborted,
        "layouts": snapshot.layouts,
        "members": [dict(member) for member in snapshot.members],
        **facts,
    }
    (folder / FACTS).write_text(json.dumps(plain, indent=1), encoding="utf-8", newline="\n")
    return [ARRAYS, FACTS, LEDGER, ROUNDS]


def read_facts(folder: Path) -> dict[str, Any]:
    """Return the plain data of a snapshot, `config` and `environment` included."""
    facts: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    return facts


def read_snapshot(folder: Path) -> Snapshot:
    """Return what `write_snapshot` wrote; its files are whole, as `Generation.damage` found."""
    from safetensors.numpy import load_file

    facts = read_facts(folder)
    lines = (folder / ROUNDS).read_text(encoding="utf-8").splitlines()
    parameters, buffers = facts["layouts"]
    return Snapshot(
        run_id=facts["run_id"],
        round=facts["round"],
        num_aborted=facts["num_aborted"],
        members=facts["members"],
        layouts=(parameters, buffers),
        arrays=load_file(folder / ARRAYS),
        ledger=Ledger.from_parquet(folder / LEDGER),
        records=[RoundRecord.from_dict(json.loads(line)) for line in lines],
    )
