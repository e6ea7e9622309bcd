"""Client states as memory-mapped files: the home on actors and on devices.

Two slot files per client (`fedsbc.state_slot`) are written in turn, so that the state that a round
started from stays whole until a later round has begun: a repeated request finds it again, and a
process that dies in the middle of a write has spoilt only the slot that nobody needs.
"""

import functools
from pathlib import Path
from typing import Any

from fedsbc.arrays import Vector
from fedsbc.state import ClientState, newest_slot, slot_to_write
from fedsbc.state_slot import Slot

FIELDS = ("run_id", "round", "base_version")


class FileHome:
    """The state of one client of one run, in two slot files of a folder.

    Args:
        folder: where the files lie.
        run_id: states of another run are never returned.
        client_id: the client.
        durable: survive the loss of power, not only of the process.
    """

    def __init__(self, folder: Path, run_id: str, client_id: int, *, durable: bool = False) -> None:
        self.folder = folder
        self.run_id = run_id
        self._slots = [
            Slot(folder / f"client-{client_id:05d}.{letter}", durable=durable) for letter in "ab"
        ]

    @property
    def mapped_bytes(self) -> int:
        """Bytes of files that are mapped."""
        return sum(slot.mapped_bytes for slot in self._slots)

    def _headers(self) -> list[dict[str, Any] | None]:
        headers = [slot.header() for slot in self._slots]
        return [
            header if header and header["run_id"] == self.run_id else None for header in headers
        ]

    def load(self, before_round: int) -> ClientState | None:
        """Return the newest state written before that round; its arrays are read-only views."""
        headers = self._headers()
        index = newest_slot(_rounds(headers), before_round)
        header = None if index is None else headers[index]
        if index is None or header is None:
            return None
        return ClientState(
            **{name: header[name] for name in FIELDS}, arrays=self._slots[index].arrays(header)
        )

    def save(self, state: ClientState) -> None:
        """Store the state in the slot that its round did not start from."""
        assert state.run_id == self.run_id, "a home belongs to one run"
        index = slot_to_write(_rounds(self._headers()), state.round)
        self._slots[index].write({name: getattr(state, name) for name in FIELDS}, state.arrays)

    def base_weights(self, version: int) -> tuple[Vector, Vector] | None:
        """Return the shared (weights, buffers) of that version, read-only, or None."""
        return shared_weights(self.folder).read(version)


def _rounds(headers: list[dict[str, Any] | None]) -> list[int | None]:
    return [header["round"] if header else None for header in headers]


class SharedWeights:
    """The server's current weights, once per machine, for every actor to map.

    Two files are written in turn, so that a version stays readable while the next is written.
    """

    def __init__(self, folder: Path) -> None:
        self._slots = [Slot(folder / f"weights.{letter}") for letter in "ab"]

    def publish(self, version: int, weights: Vector, buffers: Vector) -> None:
        """Store the weights of a version, shape (d,), and the float buffers."""
        fields = {"version": version}
        self._slots[version % 2].write(fields, {"weights": weights, "buffers": buffers})

    def read(self, version: int) -> tuple[Vector, Vector] | None:
        """Return read-only views of the weights and buffers of a version, or None."""
        slot = self._slots[version % 2]
        header = slot.header()
        if header is None or header["version"] != version:
            return None
        arrays = slot.arrays(header)
        return arrays["weights"], arrays["buffers"]


@functools.cache
def shared_weights(folder: Path) -> SharedWeights:
    """Return this process's view of a folder's shared weights, mapped once."""
    return SharedWeights(folder)
