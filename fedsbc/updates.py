"""An update: what one side sends, as values in memory. `fedsbc.payload` turns it into bytes.

An update has one block per tensor of its layout. A block knows its size, how many entries it
keeps, and how to add itself to an accumulator without a dense temporary. Blocks are frozen; the
arrays inside are never written to after construction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.layout import Layout

Positions = NDArray[np.int64]
"""Strictly increasing entry numbers within one tensor, shape (k,), dtype int64."""


@runtime_checkable
class Block(Protocol):
    """The compressed change of one tensor of `size` entries."""

    @property
    def size(self) -> int:
        """Number of entries of the tensor."""

    @property
    def num_kept(self) -> int:
        """Number of entries that the block carries."""

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""


@dataclass(frozen=True, eq=False)
class DenseBlock:
    """Every entry as float32.

    Attributes:
        values: shape (size,), float32.
    """

    values: Vector

    @property
    def size(self) -> int:
        """Number of entries of the tensor."""
        return len(self.values)

    @property
    def num_kept(self) -> int:
        """All entries."""
        return len(self.values)

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""
        if scale == 1.0:
            accumulator += self.values
        else:
            accumulator += self.values * np.float32(scale)


@dataclass(frozen=True, eq=False)
class SparseMeanBlock:
    """Entries at `positions`, all of one signed value: the SBC block.

    Attributes:
        size: number of entries of the tensor.
        positions: shape (k,), int64, strictly increasing.
        mean: the value of each, float32; 0.0 if and only if there are no positions.
    """

    size: int
    positions: Positions
    mean: np.float32

    @property
    def num_kept(self) -> int:
        """Number of positions, k."""
        return len(self.positions)

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""
        accumulator[self.positions] += self.mean * np.float32(scale)


@dataclass(frozen=True, eq=False)
class SparseFloatBlock:
    """Entries at `positions` with a float32 value each: the Top-k block.

    Attributes:
        size: number of entries of the tensor.
        positions: shape (k,), int64, strictly increasing.
        values: shape (k,), float32.
    """

    size: int
    positions: Positions
    values: Vector

    @property
    def num_kept(self) -> int:
        """Number of positions, k."""
        return len(self.positions)

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""
        accumulator[self.positions] += self.values * np.float32(scale)


@dataclass(frozen=True, eq=False)
class Update:
    """A compressed change of a model.

    Attributes:
        layout: the tensors; `layout.size` is d.
        blocks: one block per tensor, in the layout's order.
    """

    layout: Layout
    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        sizes = [block.size for block in self.blocks]
        assert sizes == [tensor.size for tensor in self.layout.tensors], "blocks match the layout"

    @property
    def size(self) -> int:
        """Length d of the vector that is changed."""
        return self.layout.size

    @property
    def num_kept(self) -> int:
        """Number of entries that the update carries."""
        return sum(block.num_kept for block in self.blocks)

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the update to a float32 vector of shape (d,), in place."""
        for view, block in zip(self.layout.split(accumulator), self.blocks, strict=True):
            block.add_to(view, scale)

    def to_dense(self) -> Vector:
        """Return the update as a float32 vector of shape (d,)."""
        dense = self.layout.zeros()
        self.add_to(dense)
        return dense
