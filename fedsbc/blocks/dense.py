"""Blocks that hold a number for every entry."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.blocks.base import Bitwise, chunks, finite_problem


@dataclass(frozen=True, eq=False)
class DenseBlock(Bitwise):
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
            return
        for chunk in chunks(self.size):
            accumulator[chunk] += self.values[chunk] * np.float32(scale)

    def problem(self) -> str:
        """Say what makes the values unfit to be sent; '' if nothing does."""
        return finite_problem(self.values)


@dataclass(frozen=True, eq=False)
class HalfBlock(Bitwise):
    """Every entry as float16.

    Attributes:
        values: shape (size,), float16.
    """

    values: NDArray[np.float16]

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
        for chunk in chunks(self.size):
            accumulator[chunk] += self.values[chunk].astype(np.float32) * np.float32(scale)

    def problem(self) -> str:
        """Say what makes the values unfit to be sent; '' if nothing does."""
        return "" if np.isfinite(self.values).all() else "a value is not finite"
