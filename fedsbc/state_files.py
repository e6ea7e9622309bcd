"""Client states as memory-mapped files: the home on actors and on devices.

Two slot files per client (`fedsbc.state_slot`) are written in turn, so that the state that a round
started from stays whole until a later round has begun: a repeated request finds it again, and a
process that dies in the middle of a write has spoilt only the slot that nobody needs. A header has
run id, round and version beside the table of arrays.
"""

from pathlib import Path

from fedsbc.arrays import Vector
from fedsbc.shared_weights import shared_weights
from fedsbc.state import ClientState, newest_slot, slot_to_write
from fedsbc.state_slot import Header, Slot

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
        self.run_id = run_id
        self._slots = [
            Slot(folder / f"client-{client_id:05d}.{letter}", durable=durable) for letter in "ab"
        ]
        self._weights = shared_weights(folder)
        self._seen: tuple[int, list[int | None]] | None = None

    @property
    def mapped_bytes(self) -> int:
        """Bytes of this client's files that this object keeps mapped, once it was used."""
        return sum(slot.mapped_bytes for slot in self._slots)

    def _headers(self) -> list[Header | None]:
        """Look at both files, once; return the headers of this run's states."""
        headers = [slot.header() for slot in self._slots]
        return [
            header if header and header["run_id"] == self.run_id else None for header in headers
        ]

    def load(self, before_round: int) -> ClientState | None:
        """Return the newest state written before that round; its arrays are read-only views."""
        headers = self._headers()
        rounds = _rounds(headers)
        self._seen = before_round, rounds
        index = newest_slot(rounds, before_round)
        header = None if index is None else headers[index]
        if index is None or header is None:
            return None
        return ClientState(
            **{name: header[name] for name in FIELDS}, arrays=self._slots[index].arrays(header)
        )

    def save(self, state: ClientState) -> None:
        """Store the state in the slot that its round did not start from."""
        assert state.run_id == self.run_id, "a home belongs to one run"
        index = slot_to_write(self._rounds_at_start(state.round), state.round)
        self._slots[index].write({name: getattr(state, name) for name in FIELDS}, state.arrays)

    def _rounds_at_start(self, round: int) -> list[int | None]:
        """Return the rounds of both slots when this round was begun, or now if it was not.

        One client is played by one process at a time, so what `load` saw still holds; and if not,
        the slot that it did not return is still the one to write.
        """
        seen, self._seen = self._seen, None
        return seen[1] if seen and seen[0] == round else _rounds(self._headers())

    def base_weights(self, version: int) -> tuple[Vector, Vector] | None:
        """Return the shared (weights, buffers) of that version, read-only, or None."""
        return self._weights.read(version)


def _rounds(headers: list[Header | None]) -> list[int | None]:
    return [header["round"] if header else None for header in headers]
