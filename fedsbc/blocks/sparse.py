"""Blocks that hold a number for some entries and leave the others as they are.

They add themselves with `np.add.at`: the positions differ, so the sum is that of `+=`, and each
entry is fetched from memory once and not twice.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.blocks.base import Bitwise, Flags, Positions, finite_problem
from fedsbc.coding.sampling import sample_positions


@dataclass(frozen=True, eq=False)
class _AtPositions(Bitwise):
    """Entries of a tensor of `size` entries at strictly increasing `positions`."""

    size: int
    positions: Positions

    @property
    def num_kept(self) -> int:
        """Number of positions, k."""
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class SparseMeanBlock(_AtPositions):
    """Entries at `positions`, all of one signed value: the SBC block.

    Attributes:
        size: number of entries of the tensor.
        positions: shape (k,), int64, strictly increasing.
        mean: the value of each, float32; 0.0 if and only if there are no positions.
    """

    mean: np.float32

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""
        np.add.at(accumulator, self.positions, self.mean * np.float32(scale))

    def problem(self) -> str:
        """Say what makes the values unfit to be sent; '' if nothing does."""
        return _mean_problem(self.mean, self.num_kept, -math.inf)


@dataclass(frozen=True, eq=False)
class SparseSignBlock(_AtPositions):
    """Entries at `positions`, each plus or minus one value: the STC block.

    Attributes:
        size: number of entries of the tensor.
        positions: shape (k,), int64, strictly increasing.
        negative: whether an entry is -mean and not +mean, shape (k,), bool.
        mean: float32, above 0; 0.0 if and only if there are no positions.
    """

    negative: Flags
    mean: np.float32

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""
        step = self.mean * np.float32(scale)
        np.add.at(accumulator, self.positions, np.where(self.negative, -step, step))

    def problem(self) -> str:
        """Say what makes the values unfit to be sent; '' if nothing does."""
        return _mean_problem(self.mean, self.num_kept, 0.0)


@dataclass(frozen=True, eq=False)
class SparseTwoMeanBlock(_AtPositions):
    """Entries at `positions`, one value for the positive and one for the negative ones.

    Attributes:
        size: number of entries of the tensor.
        positions: shape (k,), int64, strictly increasing.
        negative: which entries have the negative mean, shape (k,), bool.
        positive_mean: float32, above 0; 0.0 if and only if no entry has it.
        negative_mean: float32, below 0; 0.0 if and only if no entry has it.
    """

    negative: Flags
    positive_mean: np.float32
    negative_mean: np.float32

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""
        low, high = self.negative_mean * np.float32(scale), self.positive_mean * np.float32(scale)
        np.add.at(accumulator, self.positions, np.where(self.negative, low, high))

    def problem(self) -> str:
        """Say what makes the values unfit to be sent; '' if nothing does."""
        num_negative = int(np.count_nonzero(self.negative))
        positive = _mean_problem(self.positive_mean, self.num_kept - num_negative, 0.0)
        return positive or _mean_problem(self.negative_mean, num_negative, -math.inf, 0.0)


@dataclass(frozen=True, eq=False)
class SparseFloatBlock(_AtPositions):
    """Entries at `positions` with a float32 value each: the Top-k block.

    Attributes:
        size: number of entries of the tensor.
        positions: shape (k,), int64, strictly increasing.
        values: shape (k,), float32.
    """

    values: Vector

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""
        np.add.at(accumulator, self.positions, self.values * np.float32(scale))

    def problem(self) -> str:
        """Say what makes the values unfit to be sent; '' if nothing does."""
        return finite_problem(self.values)


@dataclass(frozen=True, eq=False)
class SeededBlock(Bitwise):
    """Entries at positions that both sides draw from a seed, a float32 each: the Rand-k block.

    All seeded blocks of an update have the same seed, which travels once.

    Attributes:
        size: number of entries of the tensor.
        seed: 64 bits, 0 to 2**64 - 1.
        index: number of the tensor in its layout, so that equal tensors draw differently.
        values: shape (k,), float32, in the order of the positions.
    """

    size: int
    seed: int
    index: int
    values: Vector

    @property
    def num_kept(self) -> int:
        """Number of values, k."""
        return len(self.values)

    @cached_property
    def positions(self) -> Positions:
        """The positions that the seed stands for, shape (k,), int64, strictly increasing."""
        return sample_positions(self.seed, self.index, self.size, self.num_kept)

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""
        np.add.at(accumulator, self.positions, self.values * np.float32(scale))

    def problem(self) -> str:
        """Say what makes the values unfit to be sent; '' if nothing does."""
        if not 0 <= self.seed < 2**64:
            return f"the seed {self.seed} does not have 64 bits"
        return finite_problem(self.values)


def _mean_problem(mean: np.float32, used: int, above: float, below: float = math.inf) -> str:
    """Say what is wrong with the mean of `used` entries; that of none is +0.0."""
    value = float(mean)
    if used == 0:
        return "" if value == 0 and math.copysign(1.0, value) > 0 else f"a mean of no entry: {mean}"
    return "" if above < value < below and value != 0 else f"the mean of {used} entries is {mean}"
