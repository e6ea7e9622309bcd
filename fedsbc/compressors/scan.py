"""Exact selection at the speed of memory: one pass finds few candidates, which are sorted out.

A strided sample sets a limit on each side of zero beyond which a little more than k entries are
expected. One pass, in chunks that stay in the L2 cache, collects what lies beyond the limits.
Where that is fewer than k, entries equal to the limit fill up; where there are not enough of
those, the plain path of `fedsbc.selection` takes over. So the result is always the plain path's.
"""

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.selection import Selected, where
from fedsbc.updates import Positions

CHUNK_ENTRIES = 65536
"""Entries of a chunk: 256 KiB of float32, so that three chunks and masks fit an L2 cache."""

SPARSE = 0.004
"""Below this density of entries outside, one look at every flag is the fastest way to find them."""

Limits: TypeAlias = tuple[np.float32, np.float32]
"""A low limit, at most 0, and a high one, at least 0; zero leaves nothing of its side out."""


def sample_stride(size: int) -> int:
    """Return the stride of the sample of a vector of `size` entries.

    sqrt(n) / 8 balances the cost of the sample and that of the surplus candidates. It is odd, so
    that it does not keep step with rows whose length is a power of two.
    """
    return math.isqrt(size) // 8 | 1


def limits(sample: Vector, k: int, size: int) -> Limits:
    """Return limits beyond which, on each side, k of `size` entries are to be expected safely.

    k * m / size of the k sought entries are expected in a sample of m; three standard deviations
    and three are added to that rank, so that about one side in a thousand has fewer than k.
    """
    ordered = np.sort(sample)
    expected = k * len(ordered) / size
    rank = math.ceil(expected + 3 * math.sqrt(expected) + 3)
    zero = np.float32(0)
    if rank > len(ordered):
        return zero, zero
    return min(ordered[rank - 1], zero), max(ordered[-rank], zero)


def outside(chunks: Iterable[tuple[int, Vector]], size: int, bounds: Limits, k: int) -> Selected:
    """Return the entries below the low or above the high limit, in order.

    NaN fails every comparison and so is outside, as infinity is: both are found at no cost.

    Args:
        chunks: (start, entries) of all chunks of the vector, in order; read once.
        size: entries of the vector, above 0.
        bounds: the limits.
        k: about how many entries are outside on each side.
    """
    low, high = bounds
    find = where if k < SPARSE * size else _where_dense
    flags = np.zeros((min(size, CHUNK_ENTRIES) + 7) & -8, np.bool_)
    other = np.empty_like(flags)
    positions: list[Positions] = []
    values: list[Vector] = []
    for start, chunk in chunks:
        below = np.less(chunk, low, out=flags[: len(chunk)])
        up_to_high = np.less_equal(chunk, high, out=other[: len(chunk)])
        np.greater_equal(below, up_to_high, out=below)  # of flags: below, or not up to high
        flags[len(chunk) :] = False
        found = find(flags)
        positions.append(found + start)
        values.append(chunk[found])
    return Selected(np.concatenate(positions), np.concatenate(values))


def _where_dense(flags: NDArray[np.bool_]) -> Positions:
    """Do as `where` for flags, shape (8 m,), of which many are true: eight at a time, twice."""
    words = flags.view(np.uint64)
    hits = where(words != 0)
    within = where(words[hits].view(np.bool_))
    positions: Positions = (hits[within >> 3] << 3) + (within & 7)
    return positions


def complete(
    chosen: Selected,
    k: int,
    vector: Vector,
    bounds: tuple[np.float32, ...],
    plain: Callable[[Vector, int], Selected],
) -> Selected:
    """Fill a selection up to k entries, where the limits let too few through.

    Args:
        chosen: the entries beyond the limits, k at most, all of them if fewer.
        k: how many are sought.
        vector: float32, shape (n,), finite.
        bounds: the limits of the side or sides; entries equal to one come next.
        plain: the plain path, for where there are not enough of those.
    """
    missing = k - len(chosen.positions)
    if missing <= 0 or not any(bounds):
        return chosen
    ties = _first_equal(vector, bounds, missing)
    if len(ties) < missing:
        return plain(vector, k)
    positions = np.sort(np.concatenate([chosen.positions, ties]))
    return Selected(positions, vector[positions])


def _first_equal(vector: Vector, values: tuple[np.float32, ...], count: int) -> Positions:
    """Return the positions of the first `count` entries that equal one of the values."""
    found: list[Positions] = [np.arange(0)]
    for start in range(0, len(vector), CHUNK_ENTRIES):
        chunk = vector[start : start + CHUNK_ENTRIES]
        equal = chunk == values[0]
        for value in values[1:]:
            equal |= chunk == value
        found.append(where(equal)[:count] + start)
        count -= len(found[-1])
        if count == 0:
            break
    return np.concatenate(found)
