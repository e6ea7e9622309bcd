"""What a run keeps on one node: train set, partition, the server's weights, clients' states.

The driver's own machine has a `Keeper` in the driver itself; every other node has one as a small
Ray actor, which the driver asks. Actors of the node map the files: nothing is sent per message.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedsbc import environment
from fedsbc.arrays import Vector
from fedsbc.checkpoint.states import newest_states
from fedsbc.shared_weights import SharedWeights

from .counter import STARTING, Counter

PREFIX = "fedsbc-node-"
"""Of the folders in the temporary folder of a node."""

STATES = "states-"
"""Begins the name of the folder of states, weights and counters."""

File = tuple[str, bytes]
"""A file's name and content."""


class Keeper:
    """The files of one run on one node.

    Args:
        root: the folder, which exists; None: one of the node's own, named after the run.
        token: names that folder.
    """

    def __init__(self, root: Path | None = None, token: str = "") -> None:
        self.root = root if root is not None else _own_folder(token)
        self.states = self.root
        self._shared: SharedWeights | None = None

    def describe(self) -> dict[str, Any]:
        """Return versions and machine of the node, and where its folder is."""
        return {**environment.describe(), "root": str(self.root)}

    def begin(self, name: str) -> str:
        """Start with no states and no weights, in a folder named after it; return its path.

        A fresh name each time: an actor that outlives its part of the run must not write here.
        """
        for earlier in self.root.glob(f"{STATES}*"):
            shutil.rmtree(earlier, ignore_errors=True)
        self.states = self.root / f"{STATES}{name}"
        self.states.mkdir(exist_ok=True)
        self._shared = SharedWeights(self.states)
        return str(self.states)

    def publish(self, version: int, weights: Vector, buffers: Vector) -> None:
        """Put the weights of a version where the actors of this node map them."""
        assert self._shared is not None, "begin comes first"
        self._shared.publish(version, weights, buffers)

    def write(self, name: str, start: int, content: bytes) -> None:
        """Write a part of a file of the folder, from a position on."""
        path = self.root / name
        with path.open("r+b" if start else "wb") as file:
            file.seek(start)
            file.write(content)

    def newest(self, run_id: str, before_round: int) -> list[tuple[int, int, int]]:
        """Return client, round and bytes of each newest state that was written before a round."""
        found = newest_states(self.states, run_id, before_round)
        return [(state.client_id, state.round, state.num_bytes) for state in found]

    def read(self, run_id: str, before_round: int, clients: Sequence[int]) -> list[File]:
        """Return the newest states of some clients, each as a slot file."""
        wanted, files = set(clients), []
        for state in newest_states(self.states, run_id, before_round):
            if state.client_id in wanted:
                with state.path.open("rb") as file:
                    files.append((state.name, file.read(state.num_bytes)))
        return files

    def take(self, clients: Sequence[int]) -> list[File]:
        """Return both slot files of some clients, as they are."""
        names = [f"client-{client:05d}.{letter}" for client in clients for letter in "ab"]
        paths = [path for name in names if (path := self.states / name).exists()]
        return [(path.name, path.read_bytes()) for path in paths]

    def put(self, files: Sequence[File]) -> None:
        """Write slot files."""
        for name, content in files:
            hidden = self.states / f".{name}"
            hidden.write_bytes(content)
            hidden.replace(self.states / name)

    def drop(self, clients: Sequence[int]) -> None:
        """Remove the states of some clients."""
        for client in clients:
            for letter in "ab":
                (self.states / f"client-{client:05d}.{letter}").unlink(missing_ok=True)

    def progress(self, names: Sequence[str]) -> Mapping[str, int]:
        """Return the counters of actors by name; one that starts has none yet."""
        paths = {name: self.states / name for name in names}
        return {n: Counter(p).value if p.exists() else STARTING for n, p in paths.items()}

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root, ignore_errors=True)


def _own_folder(token: str) -> Path:
    """Make this node's folder for a run, and remove those whose keeper was killed."""
    place = Path(tempfile.gettempdir())
    mine = f"{PREFIX}{os.getuid()}-"
    hidden = place / f".{mine}{token}"
    hidden.mkdir(mode=0o700)
    _lock(hidden)  # for as long as this process lives, and before anybody else can find it
    root = hidden.rename(place / f"{mine}{token}")
    for other in place.glob(f"{mine}*"):
        if other != root:
            _remove_unlocked(other)
    return root


def _remove_unlocked(folder: Path) -> None:
    descriptor = _lock(folder)
    if descriptor is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _lock(folder: Path) -> int | None:
    """Lock a folder and return what holds the lock; None if somebody else has it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor
    return None
