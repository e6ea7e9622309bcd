"""The two scopes of a selection, as groups of tensors that are selected together."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import Scope, check_form
from fedsbc.errors import UpdateError
from fedsbc.layout import Layout, TensorSpec, is_finite
from fedsbc.selection import Selected
from fedsbc.updates import Positions

Tensors = Sequence[TensorSpec]
"""Neighbouring tensors of a layout, at least one, in its order."""


class Group(ABC):
    """The change of neighbouring tensors that share one selection, wherever it lies in memory.

    Attributes:
        tensors: at least one, in the layout's order.
    """

    tensors: Tensors

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of entries, n."""

    @abstractmethod
    def vector(self) -> Vector:
        """Return the change as a float32 vector of shape (n,); read only.

        Raises:
            UpdateError: an entry is not finite.
        """

    @abstractmethod
    def top_sides(self, k: int) -> tuple[Selected, Selected]:
        """Select the k largest entries above zero and the k lowest below, or all of fewer.

        Raises:
            UpdateError: an entry is not finite.
        """

    @abstractmethod
    def top_magnitudes(self, k: int) -> Selected:
        """Select the k entries farthest from zero, or all non-zeros where fewer are.

        Raises:
            UpdateError: an entry is not finite.
        """

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


def scope_parts(layout: Layout, scope: Scope) -> list[tuple[Tensors, slice]]:
    """Return the groups of a scope, one per tensor or one of all, and where each one lies."""
    if scope == "tensor":
        return [((tensor,), tensor.slice) for tensor in layout.tensors]
    return [(layout.tensors, slice(0, layout.size))] if layout.tensors else []


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
    raise not_finite(layout.tensors, entry, float(vector[entry]))


def not_finite(tensors: Tensors, entry: int, value: float) -> UpdateError:
    """Return the error for an entry, counted from the first tensor, that is NaN or infinite."""
    entry += tensors[0].offset
    tensor = next(t for t in tensors if t.slice.start <= entry < t.slice.stop)
    return UpdateError(
        f"the change is not finite: entry {entry - tensor.offset} of tensor '{tensor.name}' is "
        f"{value}; expected finite float32 (did the training diverge?)"
    )
