"""A partition as one file: rows of the training set per client, so that actors need not split."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PARTITION = "partition.npy"
"""Name of the file in a run's scratch folder."""


def write_parts(path: Path, parts: Sequence[NDArray[np.int64]]) -> None:
    """Write the rows of all clients: their number, the lengths, then the rows, all int64."""
    lengths = np.array([len(part) for part in parts], np.int64)
    np.save(path, np.concatenate([np.array([len(parts)], np.int64), lengths, *parts]))


def read_parts(path: Path) -> list[NDArray[np.int64]]:
    """Return what `write_parts` wrote, as views of the mapped file."""
    flat = np.load(path, mmap_mode="r")
    count = int(flat[0])
    ends = np.cumsum(flat[1 : 1 + count])
    return [np.asarray(part) for part in np.split(flat[1 + count :], ends[:-1])]
