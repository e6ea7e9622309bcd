"""Exact selection at the speed of memory: one pass finds few candidates, which are sorted out.

A strided sample sets a limit on each side of zero beyond which a little more than k entries are
expected. One pass, in chunks that stay in the L2 cache, adds the residual and collects what lies
beyond the limits. Where a side has fewer than k there, the plain path of `fedsbc.selection`
takes over, so that the result is always that of the plain path.
"""

import math
from typing import TypeAlias

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.scopes import CHUNK_ENTRIES, Group
from fedsbc.selection import Selected, largest, top_magnitude, top_negative, top_positive
from fedsbc.updates import Positions

SMALL_ENTRIES = 2048
"""Up to this many entries every non-zero is a candidate: a sample would cost more."""

Limits: TypeAlias = tuple[np.float32, np.float32]
"""A low limit, at most 0, and a high one, at least 0; zero leaves nothing of its side out."""


def top_sides(group: Group, k: int) -> tuple[Selected, Selected]:
    """Select the k largest entries above zero and the k lowest below, or all where fewer are.

    The chunks of the group are read, so that `group.out` is the sum afterwards.

    Raises:
        UpdateError: an entry is not finite.
    """
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
    _, high = _limits(np.sort(np.abs(_sample(group))), k, group.size)
    found = _outside(group, -high, high)
    chosen = _refine(found, largest(np.abs(found.values), k))
    if len(chosen.positions) < k and high > 0:
        chosen = top_magnitude(group.out, k)
    return chosen


def _sample(group: Group) -> Vector:
    """Return every s-th entry of a group, none of a small one.

    s = sqrt(n) / 8 balances the cost of the sample, n / s, and that of the surplus candidates.
    It is odd, so that it does not keep step with rows whose length is a power of two.
    """
    if group.size <= SMALL_ENTRIES:
        return group.out[:0]
    return group.sample(math.isqrt(group.size) // 8 | 1)


def _limits(ordered: Vector, k: int, size: int) -> Limits:
    """Return limits beyond which, on each side, k of `size` entries are to be expected safely.

    k * m / size of the k sought entries are expected in a sorted sample of m; four standard
    deviations and four are added to that rank.
    """
    expected = k * len(ordered) / max(size, 1)
    rank = math.ceil(expected + 4 * math.sqrt(expected) + 4)
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
    size = min(group.size, CHUNK_ENTRIES)
    below_high, above_low = np.empty(size, np.bool_), np.empty(size, np.bool_)
    all_positions: list[Positions] = [np.arange(0)]
    all_values: list[Vector] = [group.out[:0]]
    for start, chunk in group.chunks():
        inside = np.less_equal(chunk, high, out=below_high[: len(chunk)])
        inside &= np.greater_equal(chunk, low, out=above_low[: len(chunk)])
        positions = np.flatnonzero(np.logical_not(inside, out=inside))
        all_positions.append(positions + start)
        all_values.append(chunk[positions])
    found = Selected(np.concatenate(all_positions), np.concatenate(all_values))
    group.check_finite(*found)
    return found


def _refine(found: Selected, chosen: Positions) -> Selected:
    return Selected(found.positions[chosen], found.values[chosen])
