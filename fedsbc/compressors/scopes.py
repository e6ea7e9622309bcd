"""The two scopes of a selection, as groups of tensors that are selected together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import Scope
from fedsbc.layout import Layout, TensorSpec
from fedsbc.updates import Positions


@dataclass(frozen=True)
class Group:
    """Neighbouring tensors of a layout that share one selection.

    Attributes:
        tensors: at least one, in the layout's order.
    """

    tensors: Sequence[TensorSpec]

    @property
    def start(self) -> int:
        """Index of the group's first entry in the flat vector."""
        return self.tensors[0].offset

    @property
    def size(self) -> int:
        """Number of entries of the group."""
        return self.tensors[-1].offset + self.tensors[-1].size - self.start

    def view(self, vector: Vector) -> Vector:
        """Return the group's part of a vector of shape (d,), shape (size,)."""
        return vector[self.start : self.start + self.size]

    def split(self, positions: Positions) -> Iterator[tuple[TensorSpec, Positions, slice]]:
        """Share out sorted positions within the group among its tensors.

        Yields:
            each tensor, its positions within the tensor, and where they were in `positions`.
        """
        starts = [tensor.offset - self.start for tensor in self.tensors]
        bounds = [*np.searchsorted(positions, starts).tolist(), len(positions)]
        for tensor, start, low, high in zip(
            self.tensors, starts, bounds[:-1], bounds[1:], strict=True
        ):
            yield tensor, positions[low:high] - start, slice(low, high)


def groups(layout: Layout, scope: Scope) -> list[Group]:
    """Return the groups of a scope: one per tensor, or one of all; none for an empty layout."""
    if scope == "tensor":
        return [Group((tensor,)) for tensor in layout.tensors]
    return [Group(layout.tensors)] if layout.tensors else []
