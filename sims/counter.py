"""A number in a mapped file: how far an actor is, readable even while the actor hangs."""

from pathlib import Path

import numpy as np

STARTING = -1


class Counter:
    """One int64 that one process writes and others read.

    Args:
        path: the file; made if need be.
        value: written first; None leaves what is there.
    """

    def __init__(self, path: Path, value: int | None = None) -> None:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(8))
        self._number = np.memmap(path, np.int64, "r+", shape=(1,))
        if value is not None:
            self.value = value

    @property
    def value(self) -> int:
        """The number."""
        return int(self._number[0])

    @value.setter
    def value(self, value: int) -> None:
        self._number[0] = value
