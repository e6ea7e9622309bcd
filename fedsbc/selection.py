"""Which entries are sent: how many, and the exact largest ones.

k = max(1, ceil(density * size)), the product taken exactly as decimals. Exactly k entries are
selected, or all that qualify where fewer do. Zeros never qualify; of equal entries the lowest
index goes first.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.updates import Positions


class Selected(NamedTuple):
    """The selected entries of a vector.

    Attributes:
        positions: shape (n,), int64, strictly increasing.
        values: shape (n,), float32: the vector's entries there, with their sign.
    """

    positions: Positions
    values: Vector


@lru_cache(maxsize=4096)
def num_to_keep(density: float, size: int) -> int:
    """Return k, the number of entries of a vector of `size` that are sent.

    The density counts as the decimal that it prints as, so that 0.07 of 100 is 7.

    Args:
        density: fraction of entries to send, in (0, 1].
        size: number of entries.

    Returns:
        max(1, ceil(density * size)), and 0 for an empty vector.

    >>> num_to_keep(0.07, 100), num_to_keep(0.001, 10), num_to_keep(0.5, 0)
    (7, 1, 0)
    """
    assert 0 < density <= 1, f"density is in (0, 1], got {density}"
    assert size >= 0, f"size is not negative, got {size}"
    if size == 0:
        return 0
    return max(1, math.ceil(Fraction(repr(float(density))) * size))


def top_positive(vector: Vector, k: int) -> Selected:
    """Select the k largest entries above zero, or all of them where fewer are.

    Args:
        vector: shape (n,), float32, finite.
        k: how many to select, 0 or more.
    """
    return _take(vector, largest(vector, k))


def top_negative(vector: Vector, k: int) -> Selected:
    """Select the k lowest entries below zero, or all of them where fewer are.

    Args:
        vector: shape (n,), float32, finite.
        k: how many to select, 0 or more.
    """
    return _take(vector, largest(-vector, k))


def top_magnitude(vector: Vector, k: int) -> Selected:
    """Select the k entries that are farthest from zero, or all non-zeros where fewer are.

    Args:
        vector: shape (n,), float32, finite.
        k: how many to select, 0 or more.
    """
    return _take(vector, largest(np.abs(vector), k))


def largest(keys: Vector, k: int) -> Positions:
    """Return the sorted positions of the k largest keys above zero, the lowest index first.

    Args:
        keys: shape (n,), float32, finite.
        k: how many, 0 or more; all that are above zero where fewer are.
    """
    if k == 0:
        return np.arange(0)
    if k == 1 and len(keys):
        best = int(keys.argmax())
        return np.arange(best, best + 1 if keys[best] > 0 else best)
    rank = len(keys) - k
    threshold = np.partition(keys, rank)[rank] if rank > 0 else np.float32(0)
    if threshold <= 0:
        return where(keys > 0)
    positions = where(keys >= threshold)
    return positions if len(positions) == k else _without_late_ties(keys, positions, threshold, k)


def _without_late_ties(
    keys: Vector, positions: Positions, threshold: np.float32, k: int
) -> Positions:
    """Leave out so many of the last keys that equal the threshold that k positions remain."""
    ties = where(keys[positions] == threshold)
    return np.delete(positions, ties[k - len(positions) :])


def largest_of(keys: Vector, flags: NDArray[np.bool_], k: int) -> Positions:
    """Return the sorted positions of the k largest keys among the flagged ones, see `largest`."""
    candidates = where(flags)
    return candidates[largest(keys[candidates], k)]


def where(flags: NDArray[np.bool_]) -> Positions:
    """Return the positions at which flags, shape (n,), are true; leaner than `np.flatnonzero`."""
    return flags.nonzero()[0]


def mean(values: Vector) -> np.float32:
    """Return the mean of a vector of shape (n,): float64 sum in index order, rounded once.

    The mean of no values is 0.
    """
    if len(values) == 0:
        return np.float32(0)
    if len(values) == 1:
        return np.float32(values[0])
    sums = np.add.accumulate(values.astype(np.float64))  # from left to right, unlike np.sum
    return np.float32(sums[-1] / len(values))


def _take(vector: Vector, positions: Positions) -> Selected:
    return Selected(positions, vector[positions])
