"""Clients' states in and out of a checkpoint: the newest whole slot of each, as one file.

The folder `clients/` of a generation is itself a folder of slot files (`fedsbc.state_slot`), with
one slot per client. A slot is copied, never linked: actors write theirs in place. Reading is safe
while actors train the next round, because that round writes to the other slot.
"""

import hashlib
import itertools
import os
import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedsbc.errors import RunError
from fedsbc.state import newest_slot
from fedsbc.state_slot import HEADER_BYTES, parse_header

CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class StateFile:
    """The slot that holds the newest state of a client.

    Attributes:
        path: the slot file.
        client_id: whose.
        round: the round in which the state was written.
        num_bytes: length of the header and the arrays; the file may be longer.
    """

    path: Path
    client_id: int
    round: int
    num_bytes: int

    @property
    def name(self) -> str:
        """Its name in a generation's folder."""
        return f"client-{self.client_id:05d}.a"


def newest_states(
    folders: Path | Sequence[Path], run_id: str, before_round: int
) -> list[StateFile]:
    """Return each client's newest state of a run that was written before a round, by client id.

    Args:
        folders: of slot files; they need not exist.
        run_id: states of other runs are left out.
        before_round: the round that comes next.
    """
    slots: dict[int, list[StateFile]] = defaultdict(list)
    places = [folders] if isinstance(folders, Path) else folders
    for path in itertools.chain.from_iterable(place.glob("client-*.[ab]") for place in places):
        header = _header(path)
        if header is not None and header["run_id"] == run_id:
            client_id = int(path.stem.partition("-")[2])
            state = StateFile(path, client_id, header["round"], _used_bytes(header))
            slots[client_id].append(state)
    found = []
    for _, states in sorted(slots.items()):
        index = newest_slot([state.round for state in states], before_round)
        if index is not None:
            found.append(states[index])
    return found


def _header(path: Path) -> dict[str, Any] | None:
    with path.open("rb") as file:
        return parse_header(file.read(HEADER_BYTES))


def _used_bytes(header: dict[str, Any]) -> int:
    ends = [
        offset + int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        for _, dtype, shape, offset in header["arrays"]
    ]
    return max(ends, default=HEADER_BYTES)


def copy_state(state: StateFile, target: Path) -> str:
    """Copy a state to a new file, flush it to the disk, and return its sha256 (hex).

    Raises:
        OSError: it cannot be written.
        RunError: the state was written to in the meantime.
    """
    digest, left = hashlib.sha256(), state.num_bytes
    with state.path.open("rb") as source, target.open("xb") as copy:
        while left:
            chunk = source.read(min(left, CHUNK_BYTES))
            if left == state.num_bytes:
                header = parse_header(chunk)
                if header is None or header["round"] != state.round:
                    raise RunError(f"state of client {state.client_id} changed under the copy")
            digest.update(chunk)
            copy.write(chunk)
            left -= len(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    return digest.hexdigest()


def restore_states(generation: Path, folder: Path) -> None:
    """Copy the clients' states of a generation to a folder of slot files, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((generation / "clients").iterdir()):
        restore_state(path, folder)


def restore_state(path: Path, folder: Path) -> None:
    """Copy one client's state of a generation to a folder of slot files."""
    shutil.copyfile(path, folder / path.name)
