"""The two scopes of a selection, as groups of tensors that are selected together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import Scope, check_form
from fedsbc.errors import UpdateError
from fedsbc.layout import Layout, TensorSpec, is_finite
from fedsbc.updates import Positions

CHUNK_ENTRIES = 65536
"""Entries of a chunk: 256 KiB of float32, so that three chunks and masks fit an L2 cache."""


@dataclass(frozen=True)
class Group:
    """Neighbouring tensors that share one selection; their change may still have to be added up.

    Attributes:
        tensors: at least one, in the layout's order.
        out: float32, shape (n,); where the sum is, once the chunks were read. May be `delta`.
        delta: float32, shape (n,); the change, or its first term.
        residual: float32, shape (n,); the second term, or None: then `out` is `delta`.
    """

    tensors: Sequence[TensorSpec]
    out: Vector
    delta: Vector
    residual: Vector | None = None

    @classmethod
    def of(cls, vector: Vector) -> "Group":
        """Return a vector of shape (n,) as a group of one tensor."""
        return cls(Layout.single(len(vector)).tensors, vector, vector)

    @property
    def size(self) -> int:
        """Number of entries, n."""
        return len(self.out)

    def sample(self, stride: int) -> Vector:
        """Return every stride-th entry of the sum; to be called before the chunks are read."""
        if self.residual is None:
            return self.delta[::stride]
        return self.delta[::stride] + self.residual[::stride]

    def chunks(self) -> Iterator[tuple[int, Vector]]:
        """Add up chunk by chunk and yield (start, sum) of each; to be read once, to the end."""
        for start in range(0, self.size, CHUNK_ENTRIES):
            where = slice(start, start + CHUNK_ENTRIES)
            chunk = self.out[where]
            if self.residual is not None:
                np.add(self.delta[where], self.residual[where], out=chunk)
            yield start, chunk

    def added(self) -> "Group":
        """Add up all of the group and return it as the sum alone."""
        for _ in self.chunks():
            pass
        return Group(self.tensors, self.out, self.out)

    def split(self, positions: Positions) -> Iterator[tuple[TensorSpec, Positions, slice]]:
        """Share out sorted positions within the group among its tensors.

        Yields:
            each tensor, its positions within the tensor, and where they were in `positions`.
        """
        if len(self.tensors) == 1:
            yield self.tensors[0], positions, slice(None)
            return
        starts = [tensor.offset - self.tensors[0].offset for tensor in self.tensors]
        bounds = [*np.searchsorted(positions, starts).tolist(), len(positions)]
        for tensor, start, low, high in zip(
            self.tensors, starts, bounds[:-1], bounds[1:], strict=True
        ):
            yield tensor, positions[low:high] - start, slice(low, high)


def groups(
    layout: Layout,
    scope: Scope,
    delta: Vector,
    residual: Vector | None = None,
    out: Vector | None = None,
) -> Iterator[Group]:
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
    parts = [(tensor,) for tensor in layout.tensors] if scope == "tensor" else [layout.tensors]
    for tensors in parts:
        if tensors:
            where = slice(tensors[0].slice.start, tensors[-1].slice.stop)
            rest = None if residual is None else residual[where]
            yield Group(tensors, out[where], delta[where], rest)


def not_finite(tensors: Sequence[TensorSpec], entry: int, value: np.float32) -> UpdateError:
    """Return the error for an entry, counted from the first tensor, that is NaN or infinite."""
    entry += tensors[0].offset
    tensor = next(t for t in tensors if t.slice.start <= entry < t.slice.stop)
    return UpdateError(
        f"the change is not finite: entry {entry - tensor.offset} of tensor '{tensor.name}' is "
        f"{value}; expected finite float32 (did the training diverge?)"
    )


def check_vector(vector: Vector, layout: Layout) -> None:
    """Refuse what is not a finite float32 vector of shape (d,).

    Raises:
        UpdateError: wrong dtype or length; NaN or infinity, with its entry and tensor.
    """
    check_form(vector, layout)
    with np.errstate(over="ignore"):
        if is_finite(vector):
            return
    entry = int(np.flatnonzero(~np.isfinite(vector))[0])
    raise not_finite(layout.tensors, entry, vector[entry])
