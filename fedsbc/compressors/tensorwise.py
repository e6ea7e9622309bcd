"""What all schemes share that send every tensor by itself, whole, and keep no state."""

from abc import ABC, abstractmethod

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import State
from fedsbc.compressors.scopes import check_vector
from fedsbc.layout import Layout
from fedsbc.updates import Block, Update


class TensorwiseCompressor(ABC):
    """A scheme that makes a block of each tensor; a subclass says how in `block`."""

    @abstractmethod
    def block(self, part: Vector, generator: np.random.Generator) -> Block:
        """Return the block of one tensor.

        Args:
            part: its change, float32, shape (n,), finite; read only, not to be kept.
            generator: the only source of randomness.
        """

    def init_state(self, layout: Layout) -> State:
        """Return no state."""
        return {}

    def compress(
        self, vector: Vector, layout: Layout, state: State, generator: np.random.Generator
    ) -> tuple[Update, State]:
        """Compress a float32 vector of shape (d,), see `Compressor`.

        Raises:
            UpdateError: the vector is not finite.
        """
        check_vector(vector, layout)
        return Update(layout, [self.block(part, generator) for part in layout.split(vector)]), state
