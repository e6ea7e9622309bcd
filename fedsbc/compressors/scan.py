"""Exact selection at the speed of memory: one pass finds few candidates, which are sorted out.

A strided sample sets a limit on each side of zero beyond which a little more than k entries are
expected. One pass, in chunks that stay in the L2 cache, adds the residual and collects what lies
beyond the limits. Where a side has fewer than k there, the plain path of `fedsbc.selection`
takes over, so that the result is always that of the plain path.
"""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.compressors.scopes import CHUNK_ENTRIES, Group, not_finite
from fedsbc.selection import Selected, largest, top_magnitude, top_negative, top_positive, where
from fedsbc.updates import Positions

SMALL_ENTRIES = 2048
"""Up to this many entries the plain path is faster."""

Words: TypeAlias = NDArray[np.uint64]
"""Eight flags of one byte each, shape (m,); looked at together."""

Limits: TypeAlias = tuple[np.float32, np.float32]
"""A low limit, at most 0, and a high one, at least 0; zero leaves nothing of its side out."""


def top_sides(group: Group, k: int) -> tuple[Selected, Selected]:
    """Select the k largest entries above zero and the k lowest below, or all where fewer are.

    The chunks of the group are read, so that `group.out` is the sum afterwards.

    Raises:
        UpdateError: an entry is not finite.
    """
    group = _in_cache(group)
    if group.size <= SMALL_ENTRIES:
        _check_finite(group, group.out)
        return top_positive(group.out, k), top_negative(group.out, k)
    low, high = _limits(np.sort(_sample(group)), k, group.size)
    found = _outside(group, low, high)
    plus = _refine(found, largest(found.values, k))
    if len(plus.positions) < k and high > 0:
        plus = top_positive(group.out, k)
    minus = _refine(found, largest(-found.values, k))
    if len(minus.positions) < k and low < 0:
        minus = top_negative(group.out, k)
    return plus, minus


def top_magnitudes(group: Group, k: int) -> Selected:
    """Select the k entries farthest from zero, or all non-zeros where fewer are.

    The chunks of the group are read, so that `group.out` is the sum afterwards.

    Raises:
        UpdateError: an entry is not finite.
    """
    group = _in_cache(group)
    if group.size <= SMALL_ENTRIES:
        _check_finite(group, group.out)
        return top_magnitude(group.out, k)
    _, high = _limits(np.sort(np.abs(_sample(group))), k, group.size)
    found = _outside(group, -high, high)
    chosen = _refine(found, largest(np.abs(found.values), k))
    if len(chosen.positions) < k and high > 0:
        chosen = top_magnitude(group.out, k)
    return chosen


def _in_cache(group: Group) -> Group:
    """Add up a group of one chunk at once, so that its sample comes from the cache."""
    return group.added() if group.size <= CHUNK_ENTRIES else group


def _check_finite(group: Group, values: Vector, positions: Positions | None = None) -> None:
    """Refuse values, shape (m,), that are not all finite; all of the group without positions."""
    finite = np.isfinite(values)
    if not finite.all():
        bad = int(finite.argmin())
        entry = bad if positions is None else int(positions[bad])
        raise not_finite(group.tensors, entry, values[bad])


def _sample(group: Group) -> Vector:
    """Return every s-th entry of a group.

    s = sqrt(n) / 8 balances the cost of the sample, n / s, and that of the surplus candidates.
    It is odd, so that it does not keep step with rows whose length is a power of two.
    """
    return group.sample(math.isqrt(group.size) // 8 | 1)


def _limits(ordered: Vector, k: int, size: int) -> Limits:
    """Return limits beyond which, on each side, k of `size` entries are to be expected safely.

    k * m / size of the k sought entries are expected in a sorted sample of m; three standard
    deviations and three are added to that rank, so that about one side in a thousand fails.
    """
    expected = k * len(ordered) / size
    rank = math.ceil(expected + 3 * math.sqrt(expected) + 3)
    zero = np.float32(0)
    if rank > len(ordered):
        return zero, zero
    return min(ordered[rank - 1], zero), max(ordered[-rank], zero)


def _outside(group: Group, low: np.float32, high: np.float32) -> Selected:
    """Return the entries below `low` or above `high`.

    NaN fails every comparison and so is outside, as infinity is: both are found at no cost.

    Raises:
        UpdateError: an entry is not finite.
    """
    flags = np.zeros(_whole_words(min(group.size, CHUNK_ENTRIES)), np.bool_)
    other = np.empty_like(flags)
    indices: list[Positions] = [np.arange(0)]
    words: list[Words] = [np.zeros(0, np.uint64)]
    for start, chunk in group.chunks():
        below = np.less(chunk, low, out=flags[: len(chunk)])
        up_to_high = np.less_equal(chunk, high, out=other[: len(chunk)])
        np.greater_equal(below, up_to_high, out=below)  # of flags: below, or not up to high
        flags[len(chunk) :] = False
        every = flags.view(np.uint64)
        hits = where(every != 0)
        indices.append(hits + (start >> 3))
        words.append(every[hits])
    positions = _unpack(np.concatenate(indices), np.concatenate(words))
    values = group.out[positions]
    _check_finite(group, values, positions)
    return Selected(positions, values)


def _whole_words(size: int) -> int:
    """Round up to a multiple of 8."""
    return (size + 7) & -8


def _unpack(indices: Positions, words: Words) -> Positions:
    """Return where flags are true, from the words that have any and their indices, shape (m,)."""
    within = where(words.view(np.bool_))
    positions: Positions = (indices[within >> 3] << 3) + (within & 7)
    return positions


def _refine(found: Selected, chosen: Positions) -> Selected:
    return Selected(found.positions[chosen], found.values[chosen])
