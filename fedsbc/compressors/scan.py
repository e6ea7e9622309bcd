"""Exact selection at the speed of memory: one pass finds few candidates, which are sorted out.

A strided sample sets a limit on each side of zero beyond which a little more than k entries are
expected. One pass, in chunks that stay in the L2 cache, adds the residual and collects what lies
beyond the limits. Where a side has fewer than k there, the plain path of `fedsbc.selection`
takes over, so that the result is always that of the plain path.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.compressors.base import Scope
from fedsbc.compressors.scopes import Group, Tensors, not_finite, scope_parts
from fedsbc.layout import Layout
from fedsbc.selection import Selected, largest, top_magnitude, top_negative, top_positive, where
from fedsbc.updates import Positions

CHUNK_ENTRIES = 65536
"""Entries of a chunk: 256 KiB of float32, so that three chunks and masks fit an L2 cache."""

SMALL_ENTRIES = 2048
"""Up to this many entries the plain path is faster."""

Words: TypeAlias = NDArray[np.uint64]
"""Eight flags of one byte each, shape (m,); looked at together."""

Limits: TypeAlias = tuple[np.float32, np.float32]
"""A low limit, at most 0, and a high one, at least 0; zero leaves nothing of its side out."""


@dataclass(frozen=True)
class Sum(Group):
    """A group in main memory whose change may still have to be added up.

    The first of `vector`, `top_sides` and `top_magnitudes` adds up; it is to be the only one.

    Attributes:
        tensors: at least one, in the layout's order.
        out: float32, shape (n,); where the sum goes. May be `delta`.
        delta: float32, shape (n,); the change, or its first term.
        residual: float32, shape (n,); the second term, or None: then `out` is `delta`.
    """

    tensors: Tensors
    out: Vector
    delta: Vector
    residual: Vector | None = None

    @classmethod
    def of(cls, vector: Vector) -> "Sum":
        """Return a vector of shape (n,) as a group of one tensor."""
        return cls(Layout.single(len(vector)).tensors, vector, vector)

    @property
    def size(self) -> int:
        """Number of entries, n."""
        return len(self.out)

    def vector(self) -> Vector:
        """Add up and return the sum, see `Group`."""
        total = self.added()
        _check_finite(total, total.out)
        return total.out

    def top_sides(self, k: int) -> tuple[Selected, Selected]:
        """Select on each side of zero, see `Group`."""
        if self.size <= SMALL_ENTRIES:
            vector = self.vector()
            return top_positive(vector, k), top_negative(vector, k)
        total = self._in_cache()
        low, high = _limits(np.sort(_sample(total)), k, self.size)
        found = _outside(total, low, high)
        plus = _refine(found, largest(found.values, k))
        if len(plus.positions) < k and high > 0:
            plus = top_positive(self.out, k)
        minus = _refine(found, largest(-found.values, k))
        if len(minus.positions) < k and low < 0:
            minus = top_negative(self.out, k)
        return plus, minus

    def top_magnitudes(self, k: int) -> Selected:
        """Select by magnitude, see `Group`."""
        if self.size <= SMALL_ENTRIES:
            return top_magnitude(self.vector(), k)
        total = self._in_cache()
        _, high = _limits(np.sort(np.abs(_sample(total))), k, self.size)
        found = _outside(total, -high, high)
        chosen = _refine(found, largest(np.abs(found.values), k))
        if len(chosen.positions) < k and high > 0:
            chosen = top_magnitude(self.out, k)
        return chosen

    def chunks(self) -> Iterator[tuple[int, Vector]]:
        """Add up chunk by chunk and yield (start, sum) of each; to be read once, to the end."""
        for start in range(0, self.size, CHUNK_ENTRIES):
            place = slice(start, start + CHUNK_ENTRIES)
            chunk = self.out[place]
            if self.residual is not None:
                np.add(self.delta[place], self.residual[place], out=chunk)
            yield start, chunk

    def added(self) -> "Sum":
        """Add up all of the group and return it as the sum alone."""
        for _ in self.chunks():
            pass
        return Sum(self.tensors, self.out, self.out)

    def _in_cache(self) -> "Sum":
        """Add up a group of one chunk at once, so that its sample comes from the cache."""
        return self.added() if self.size <= CHUNK_ENTRIES else self


def sums(
    layout: Layout,
    scope: Scope,
    delta: Vector,
    residual: Vector | None = None,
    out: Vector | None = None,
) -> Iterator[Sum]:
    """Yield the groups of a scope: one per tensor, or one of all; none for an empty layout.

    Args:
        layout: the tensors of the vectors.
        scope: `tensor` or `model`.
        delta: the change or its first term, float32, shape (d,).
        residual: its second term, float32, shape (d,), if any.
        out: where the sum goes, float32, shape (d,); needed if there is a residual.
    """
    assert residual is None or out is not None, "a sum needs a place"
    out = delta if residual is None or out is None else out
    for tensors, place in scope_parts(layout, scope):
        rest = None if residual is None else residual[place]
        yield Sum(tensors, out[place], delta[place], rest)


def _sample(total: Sum) -> Vector:
    """Return every s-th entry of the sum, which need not be added up.

    s = sqrt(n) / 8 balances the cost of the sample, n / s, and that of the surplus candidates.
    It is odd, so that it does not keep step with rows whose length is a power of two.
    """
    stride = math.isqrt(total.size) // 8 | 1
    if total.residual is None:
        return total.delta[::stride]
    return total.delta[::stride] + total.residual[::stride]


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


def _outside(total: Sum, low: np.float32, high: np.float32) -> Selected:
    """Return the entries below `low` or above `high`.

    NaN fails every comparison and so is outside, as infinity is: both are found at no cost.

    Raises:
        UpdateError: an entry is not finite.
    """
    flags = np.zeros((min(total.size, CHUNK_ENTRIES) + 7) & -8, np.bool_)
    other = np.empty_like(flags)
    indices: list[Positions] = []
    words: list[Words] = []
    for start, chunk in total.chunks():
        below = np.less(chunk, low, out=flags[: len(chunk)])
        up_to_high = np.less_equal(chunk, high, out=other[: len(chunk)])
        np.greater_equal(below, up_to_high, out=below)  # of flags: below, or not up to high
        flags[len(chunk) :] = False
        every = flags.view(np.uint64)
        hits = where(every != 0)
        indices.append(hits + (start >> 3))
        words.append(every[hits])
    positions = _unpack(np.concatenate(indices), np.concatenate(words))
    values = total.out[positions]
    _check_finite(total, values, positions)
    return Selected(positions, values)


def _unpack(indices: Positions, words: Words) -> Positions:
    """Return where flags are true, from the words that have any and their indices, shape (m,)."""
    within = where(words.view(np.bool_))
    positions: Positions = (indices[within >> 3] << 3) + (within & 7)
    return positions


def _check_finite(total: Sum, values: Vector, positions: Positions | None = None) -> None:
    """Refuse values, shape (m,), that are not all finite; all of the group without positions."""
    finite = np.isfinite(values)
    if not finite.all():
        bad = int(finite.argmin())
        entry = bad if positions is None else int(positions[bad])
        raise not_finite(total.tensors, entry, float(values[bad]))


def _refine(found: Selected, chosen: Positions) -> Selected:
    return Selected(found.positions[chosen], found.values[chosen])
