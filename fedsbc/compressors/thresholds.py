"""What all schemes share that send the entries beyond a threshold, each as float32."""

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.compressors.scopes import Group
from fedsbc.compressors.selecting import SelectingCompressor
from fedsbc.updates import Positions, SparseFloatBlock


class ThresholdCompressor(SelectingCompressor):
    """A scheme that estimates a threshold; a subclass says in `choose` what passes it."""

    @abstractmethod
    def choose(self, magnitudes: Vector, k: int, vector: Vector) -> Positions:
        """Return the sorted positions of the entries to send, none of them zero.

        Args:
            magnitudes: absolute values of the change, float32, shape (n,), n > 0.
            k: how many entries the density asks for.
            vector: the change itself, float32, shape (n,).
        """

    def blocks(self, group: Group, k: int) -> Iterator[SparseFloatBlock]:
        """Yield one `SparseFloatBlock` per tensor, see `SelectingCompressor`."""
        vector = group.vector()
        chosen = self.choose(np.abs(vector), k, vector) if len(vector) else np.arange(0)
        for tensor, positions, place in group.split(chosen):
            yield SparseFloatBlock(tensor.size, positions, vector[chosen[place]])


def exceeding(magnitudes: Vector, threshold: float) -> NDArray[np.bool_]:
    """Return which magnitudes, shape (n,), exceed a threshold; of one below zero, which are not 0.

    The threshold is rounded to float32, its largest number at most.
    """
    limit = float(np.finfo(np.float32).max)
    return magnitudes > np.float32(min(max(threshold, 0.0), limit))
