"""Which homes of clients' states a process keeps mapped: those that were used last."""

import resource
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from fedsbc.state_files import FileHome

MAX_BYTES = 256 * 2**20
"""Of the mapped files. All of them count as memory of the process that has touched them; what is
no longer mapped stays in the system's cache of files, which gives way to whoever needs memory."""

FILES_FOR_OTHERS = 512
"""File descriptors that are left to everything else."""

Key: TypeAlias = tuple[str, str, int, bool]
"""Folder, run, client, and whether its state survives the loss of power."""


class Homes:
    """Opens homes, and keeps those that were used last within bounds.

    The views that a home has given out keep its files mapped as long as they are used.

    Args:
        max_bytes: of all mapped files; the home that is used counts whatever it has.
        max_homes: each takes two file descriptors.
    """

    def __init__(self, max_bytes: int, max_homes: int) -> None:
        self._max_bytes, self._max_homes = max_bytes, max_homes
        self._homes: dict[Key, FileHome] = {}  # the one that was used last comes last
        self._bytes: dict[Key, int] = {}
        self.num_bytes = 0
        """Mapped by all homes but the last."""

    def __len__(self) -> int:
        return len(self._homes)

    def home(self, key: Key) -> FileHome:
        """Return a home, opened if need be."""
        self._count_last()
        home = self._homes.pop(key, None) or _open(key)
        self.num_bytes -= self._bytes.pop(key, 0)
        self._homes[key] = home
        while len(self._homes) > 1 and (
            self.num_bytes > self._max_bytes or len(self._homes) > self._max_homes
        ):
            oldest = next(iter(self._homes))
            del self._homes[oldest]
            self.num_bytes -= self._bytes.pop(oldest)
        return home

    def _count_last(self) -> None:
        """Count what the last home has mapped by now: it was not used before it was returned."""
        if self._homes:
            key, home = next(reversed(self._homes.items()))
            self._bytes[key] = home.mapped_bytes
            self.num_bytes += self._bytes[key]


def _open(key: Key) -> FileHome:
    folder, run_id, client_id, is_durable = key
    return FileHome(Path(folder), run_id, client_id, durable=is_durable)


def max_homes(limit: Callable[[int], tuple[int, int]] = resource.getrlimit) -> int:
    """Return how many homes this process may keep by its limit of open files (`ulimit -n`)."""
    soft, _ = limit(resource.RLIMIT_NOFILE)
    return 2048 if soft < 0 else min(2048, max(16, (soft - FILES_FOR_OTHERS) // 2))
