"""Exact selection at the speed of memory: one pass finds few candidates, which are sorted out.

A strided sample sets a limit on each side of zero beyond which a little more than k entries are
expected. One pass, in chunks that stay in the L2 cache, collects what lies beyond the limits.
Where that is fewer than k, entries equal to the limit fill up; where there are not enough of
those, the plain path of `fedsbc.selection` takes over. So the result is always the plain path's.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.selection import Selected, where
from fedsbc.updates import Positions

CHUNK_ENTRIES = 65536
"""Entries of a chunk: 256 KiB of float32, so that three chunks and masks fit an L2 cache."""

FLAGS = 8 * CHUNK_ENTRIES
"""Flags that are looked through at once: fewer calls, and the half megabyte stays in the cache."""

NEIGHBOURS = 4
"""Entries that a sample takes at each place."""

ALL_WITHIN = np.uint64(0x0101010101010101)
"""Eight flags that are all true."""

RARE = 20
"""One flag in so many, or fewer, is worth a look at eight at a time."""

Number = TypeVar("Number", bound=np.number[Any])

Limits: TypeAlias = tuple[np.float32, np.float32]
"""A low limit, at most 0, and a high one, at least 0; zero leaves nothing of its side out."""


def sample(vector: NDArray[Number]) -> NDArray[Number]:
    """Return a strided sample of a vector of shape (n,) and any type, n at least `NEIGHBOURS`.

    Neighbours come together, as their cache line does. The sqrt(n) / 3 entries from one such
    place to the next balance the cost of the sample and that of the surplus candidates. The
    stride is odd, so that it does not keep step with rows whose length is a power of two.
    """
    stride = math.isqrt(len(vector)) // (3 * NEIGHBOURS) | 1
    whole = len(vector) - len(vector) % NEIGHBOURS
    dense = np.ascontiguousarray(vector[:whole])  # a copy only where a caller's has gaps
    places = dense.view(f"V{NEIGHBOURS * vector.itemsize}")[::stride]
    return np.ascontiguousarray(places).view(vector.dtype)


def limits(drawn: Vector, k: int, size: int) -> Limits:
    """Return limits beyond which, on each side, k of `size` entries are to be expected safely.

    k * m / size of the k sought entries are expected among m that were drawn; 3.5 standard
    deviations and three are added to that rank, so that of independent entries about one side in
    five thousand has fewer than k.
    """
    ordered = np.sort(drawn)
    expected = k * len(drawn) / size
    rank = math.ceil(expected + 3.5 * math.sqrt(expected) + 3)
    zero = np.float32(0)
    if rank > len(drawn):
        return zero, zero
    return min(ordered[rank - 1], zero), max(ordered[-rank], zero)


def outside(chunks: Iterable[tuple[int, Vector]], vector: Vector, bounds: Limits) -> Selected:
    """Return the entries below the low or above the high limit, in order.

    NaN fails every comparison and so is outside, as infinity is: both are found at no cost.

    Args:
        chunks: (start, entries) of all chunks of the vector, in order; read once.
        vector: shape (n,), n above 0; a chunk is there once it was yielded.
        bounds: the limits.
    """
    size = len(vector)
    within = np.empty((min(size, FLAGS) + 7) & -8, np.bool_)
    other = np.empty(min(size, CHUNK_ENTRIES), np.bool_)
    found: list[Positions] = []
    for start, chunk in chunks:
        first, end = start % FLAGS, start % FLAGS + len(chunk)
        flags = within[first:end]
        np.greater_equal(chunk, bounds[0], out=flags)
        np.less_equal(chunk, bounds[1], out=other[: len(chunk)])
        np.logical_and(flags, other[: len(chunk)], out=flags)
        if end == FLAGS or start + len(chunk) == size:
            within[end:] = True
            found.append(_where_not(within) + (start - first))
    positions = np.concatenate(found)
    return Selected(positions, vector[positions])


def _where_not(flags: NDArray[np.bool_]) -> Positions:
    """Return where flags, shape (8 m,), are false: eight at a time, then one by one."""
    words = flags.view(np.uint64)
    hits = _where_rare(words != ALL_WITHIN)
    return _within(hits, ~words[hits].view(np.bool_))


def _where_rare(flags: NDArray[np.bool_]) -> Positions:
    """Return where flags, shape (m,), are true: eight at a time first, if few are."""
    if len(flags) % 8 or np.count_nonzero(flags) * RARE > len(flags):
        return where(flags)
    words = flags.view(np.uint64)
    hits = where(words != 0)
    return _within(hits, words[hits].view(np.bool_))


def _within(words: Positions, flags: NDArray[np.bool_]) -> Positions:
    """Return the positions of true flags, of which there are eight in each of the given words."""
    found = where(flags)
    positions: Positions = words[found >> 3]
    positions <<= 3
    found &= 7
    positions += found
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
