"""Groups of tensors in main memory, whose change is added up in the pass that selects."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors import scan
from fedsbc.compressors.base import Scope
from fedsbc.compressors.scopes import Group, Tensors, not_finite, scope_parts
from fedsbc.layout import Layout
from fedsbc.selection import Selected, largest, top_magnitude, top_negative, top_positive
from fedsbc.updates import Positions

SMALL_ENTRIES = 2048
"""Up to this many entries the plain path of `fedsbc.selection` is faster than a scan."""


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
        total = self._added()
        total._check_finite(total.out)
        return total.out

    def top_sides(self, k: int) -> tuple[Selected, Selected]:
        """Select on each side of zero, see `Group`."""
        if self.size <= SMALL_ENTRIES:
            vector = self.vector()
            return top_positive(vector, k), top_negative(vector, k)
        total = self._in_cache()
        bounds = scan.limits(total._sample(), k, self.size)
        found = total._outside(bounds)
        plus = _refine(found, largest(found.values, k))
        minus = _refine(found, largest(-found.values, k))
        return (
            scan.complete(plus, k, self.out, bounds[1:], top_positive),
            scan.complete(minus, k, self.out, bounds[:1], top_negative),
        )

    def top_magnitudes(self, k: int) -> Selected:
        """Select by magnitude, see `Group`."""
        if self.size <= SMALL_ENTRIES:
            return top_magnitude(self.vector(), k)
        total = self._in_cache()
        _, high = scan.limits(np.abs(total._sample()), k, self.size)
        found = total._outside((-high, high))
        chosen = _refine(found, largest(np.abs(found.values), k))
        return scan.complete(chosen, k, self.out, (-high, high), top_magnitude)

    def _sample(self) -> Vector:
        """Return a sample of the sum, which need not be added up."""
        delta = scan.sample(self.delta)
        return delta if self.residual is None else delta + scan.sample(self.residual)

    def _chunks(self) -> Iterator[tuple[int, Vector]]:
        """Add up chunk by chunk and yield (start, sum) of each; to be read once, to the end."""
        for start in range(0, self.size, scan.CHUNK_ENTRIES):
            place = slice(start, start + scan.CHUNK_ENTRIES)
            chunk = self.out[place]
            if self.residual is not None:
                np.add(self.delta[place], self.residual[place], out=chunk)
            yield start, chunk

    def _added(self) -> "Sum":
        """Add up all of the group and return it as the sum alone."""
        if self.residual is None:
            return self
        np.add(self.delta, self.residual, out=self.out)
        return Sum(self.tensors, self.out, self.out)

    def _in_cache(self) -> "Sum":
        """Add up a group of one chunk at once, so that its sample comes from the cache."""
        return self._added() if self.size <= scan.CHUNK_ENTRIES else self

    def _outside(self, bounds: scan.Limits) -> Selected:
        """Add up and return the entries beyond the limits; refuse what is not finite."""
        found = scan.outside(self._chunks(), self.out, bounds)
        self._check_finite(found.values, found.positions)
        return found

    def _check_finite(self, values: Vector, positions: Positions | None = None) -> None:
        """Refuse values, shape (m,), that are not all finite; all of the group by default."""
        finite = np.isfinite(values)
        if not finite.all():
            bad = int(finite.argmin())
            entry = bad if positions is None else int(positions[bad])
            raise not_finite(self.tensors, entry, float(values[bad]))


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


def _refine(found: Selected, chosen: Positions) -> Selected:
    return Selected(found.positions[chosen], found.values[chosen])
