"""An update: what one side sends, as values in memory. `fedsbc.payload` turns it into bytes.

An update has one block per tensor of its layout; `fedsbc.blocks` lists the kinds. A block knows
its size, how many entries it keeps, and how to add itself to an accumulator without a dense
temporary. Blocks are frozen; the arrays inside are never written to after construction.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fedsbc.arrays import Vector
from fedsbc.blocks import (
    MAX_LEVEL,
    Block,
    DenseBlock,
    Flags,
    HalfBlock,
    Positions,
    QuantisedBlock,
    SeededBlock,
    SignBlock,
    SparseFloatBlock,
    SparseMeanBlock,
    SparseSignBlock,
    SparseTwoMeanBlock,
    TwoMeanBlock,
)
from fedsbc.layout import Layout

__all__ = [
    "MAX_LEVEL",
    "Block",
    "DenseBlock",
    "Flags",
    "HalfBlock",
    "Positions",
    "QuantisedBlock",
    "SeededBlock",
    "SignBlock",
    "SparseFloatBlock",
    "SparseMeanBlock",
    "SparseSignBlock",
    "SparseTwoMeanBlock",
    "TwoMeanBlock",
    "Update",
]


@dataclass(frozen=True, eq=False)
class Update:
    """A compressed change of a model. Two updates are equal if they are so bit for bit.

    Attributes:
        layout: the tensors; `layout.size` is d.
        blocks: one block per tensor, in the layout's order.
    """

    layout: Layout
    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        sizes = [block.size for block in self.blocks]
        assert sizes == [tensor.size for tensor in self.layout.tensors], "blocks match the layout"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Update):
            return NotImplemented
        return self.layout == other.layout and list(self.blocks) == list(other.blocks)

    __hash__ = None  # type: ignore[assignment]  # arrays inside

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
