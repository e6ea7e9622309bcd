"""The home of a client's state in Flower's `context.state`: for Flower's own simulation runtime."""

from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.state import ClientState, newest_slot, slot_to_write

STYPE = "fedsbc.raw"
FIELDS = ("run_id", "round", "base_version")
SLOTS = ("fedsbc-a", "fedsbc-b")


class ContextHome:
    """The state of one client of one run, in two slots of a `RecordDict`.

    Args:
        records: the node's `context.state`; a series of runs shares it, hence the run id.
        run_id: states of another run are never returned.
    """

    def __init__(self, records: RecordDict, run_id: str) -> None:
        self._records = records
        self.run_id = run_id

    def _rounds(self) -> list[int | None]:
        found: list[int | None] = []
        for slot in SLOTS:
            record = self._records.config_records.get(slot)
            ours = record is not None and record["run_id"] == self.run_id
            found.append(int(record["round"]) if record and ours else None)  # type: ignore[arg-type]
        return found

    def load(self, before_round: int) -> ClientState | None:
        """Return the newest state written before that round; its arrays are read-only views."""
        index = newest_slot(self._rounds(), before_round)
        if index is None:
            return None
        record = self._records.config_records[SLOTS[index]]
        arrays = self._records.array_records[SLOTS[index] + "-arrays"]
        values: dict[str, Any] = {name: record[name] for name in FIELDS}
        return ClientState(**values, arrays={name: _array(a) for name, a in arrays.items()})

    def save(self, state: ClientState) -> None:
        """Store the state in the slot that its round did not start from."""
        slot = SLOTS[slot_to_write(self._rounds(), state.round)]
        self._records[slot] = ConfigRecord({name: getattr(state, name) for name in FIELDS})
        self._records[slot + "-arrays"] = ArrayRecord(
            {
                name: Array(dtype=a.dtype.str, shape=a.shape, stype=STYPE, data=a.tobytes())
                for name, a in state.arrays.items()
            }
        )

    def base_weights(self, version: int) -> tuple[Vector, Vector] | None:
        """Return None: this runtime shares no weights."""
        return None


def _array(array: Array) -> NDArray[Any]:
    return np.frombuffer(array.data, array.dtype).reshape(array.shape)
