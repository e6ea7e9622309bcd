"""Blocks that hold one bit for every entry."""

from dataclasses import dataclass

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.blocks.base import Bitwise, Flags, chunks


@dataclass(frozen=True, eq=False)
class _AllSigns(Bitwise):
    """A sign for every entry."""

    negative: Flags

    @property
    def size(self) -> int:
        """Number of entries of the tensor."""
        return len(self.negative)

    @property
    def num_kept(self) -> int:
        """All entries."""
        return len(self.negative)


@dataclass(frozen=True, eq=False)
class SignBlock(_AllSigns):
    """Every entry plus or minus one scale: the signSGD block.

    Attributes:
        negative: whether an entry is -scale and not +scale, shape (size,), bool.
        scale: float32, 0 or above; +0.0 where the tensor is empty.
    """

    scale: np.float32

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""
        step = self.scale * np.float32(scale)
        for chunk in chunks(self.size):
            accumulator[chunk] += np.where(self.negative[chunk], -step, step)

    def problem(self) -> str:
        """Say what makes the values unfit to be sent; '' if nothing does."""
        if not 0 <= self.scale < np.inf or np.signbit(self.scale):
            return f"the scale {self.scale} is not a finite number of 0 or above"
        return "an empty tensor has a scale" if self.size == 0 and self.scale else ""


@dataclass(frozen=True, eq=False)
class TwoMeanBlock(_AllSigns):
    """Every entry one of two means: the block of 1-bit SGD.

    Attributes:
        negative: whether an entry is `negative_mean`, shape (size,), bool.
        positive_mean: float32, finite; +0.0 where no entry has it.
        negative_mean: float32, finite; +0.0 where no entry has it.
    """

    positive_mean: np.float32
    negative_mean: np.float32

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""
        low, high = self.negative_mean * np.float32(scale), self.positive_mean * np.float32(scale)
        for chunk in chunks(self.size):
            accumulator[chunk] += np.where(self.negative[chunk], low, high)

    def problem(self) -> str:
        """Say what makes the values unfit to be sent; '' if nothing does."""
        num_negative = int(np.count_nonzero(self.negative))
        for mean, used in (
            (self.positive_mean, self.size - num_negative),
            (self.negative_mean, num_negative),
        ):
            if not np.isfinite(mean):
                return f"the mean {mean} is not finite"
            if not used and (mean != 0 or np.signbit(mean)):
                return f"the mean {mean} belongs to no entry"
        return ""
