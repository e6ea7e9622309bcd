"""A compressor of another package: it sends the first k entries of every tensor."""

from typing import ClassVar, Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors import CompressorOptions, SparseOptions, State, check_vector
from fedsbc.layout import Layout
from fedsbc.selection import num_to_keep
from fedsbc.updates import SparseFloatBlock, Update


class FirstKOptions(SparseOptions):
    """Options of `first-k`; the scope is `tensor` alone."""

    name: Literal["first-k"] = "first-k"
    scope: Literal["tensor"] = "tensor"


class FirstK:
    """Send the first k non-zeros of every tensor."""

    Options: ClassVar[type[CompressorOptions]] = FirstKOptions

    def __init__(self, options: FirstKOptions) -> None:
        self.options = options

    def init_state(self, layout: Layout) -> State:
        """Return no state."""
        return {}

    def compress(
        self, vector: Vector, layout: Layout, state: State, generator: np.random.Generator
    ) -> tuple[Update, State]:
        """Select in a float32 vector of shape (d,)."""
        check_vector(vector, layout)
        blocks = []
        for part in layout.split(vector):
            chosen = np.flatnonzero(part)[: num_to_keep(self.options.density, len(part))]
            blocks.append(SparseFloatBlock(len(part), chosen, part[chosen]))
        return Update(layout, blocks), state
