"""The block of whole levels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.blocks.base import Bitwise, chunks

MAX_LEVEL = 2**15 - 1
"""Levels run from -MAX_LEVEL to MAX_LEVEL; finer ones are better sent as float16."""

MAX_BUCKET_LOG = 16
MAX_BUCKET_SIZE = 1 << MAX_BUCKET_LOG
"""A larger bucket is better the whole tensor; it also keeps a bucket within a chunk."""


@dataclass(frozen=True, eq=False)
class QuantisedBlock(Bitwise):
    """Every entry a whole level times the scale of its bucket: the QSGD and TernGrad block.

    Attributes:
        levels: shape (size,), int16, from -MAX_LEVEL to MAX_LEVEL.
        scales: value of level 1 in each bucket, shape (buckets,), float32, 0 or above.
        bucket_size: entries of a bucket, a power of two from 2 to MAX_BUCKET_SIZE; the last
            bucket may be shorter. 0: the tensor is one bucket. An empty tensor has no bucket.
    """

    levels: NDArray[np.int16]
    scales: Vector
    bucket_size: int = 0

    @property
    def size(self) -> int:
        """Number of entries of the tensor."""
        return len(self.levels)

    @property
    def num_kept(self) -> int:
        """Number of levels that are not zero."""
        return int(np.count_nonzero(self.levels))

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""
        for chunk in chunks(self.size):
            levels = self.levels[chunk].astype(np.float32)
            levels *= self._scale_of(chunk) * np.float32(scale)
            accumulator[chunk] += levels

    def _scale_of(self, chunk: slice) -> Vector:
        """Return the scale of each entry of a chunk, or the one of all."""
        if not self.bucket_size:
            return self.scales
        first, last = chunk.start // self.bucket_size, -(-chunk.stop // self.bucket_size)
        of_entries = np.repeat(self.scales[first:last], self.bucket_size)
        return of_entries[: chunk.stop - chunk.start]

    def problem(self) -> str:
        """Say what makes the values unfit to be sent; '' if nothing does."""
        size = self.bucket_size
        if size and (not 2 <= size <= MAX_BUCKET_SIZE or size & (size - 1)):
            return f"buckets of {size} entries are not a power of two from 2 to {MAX_BUCKET_SIZE}"
        if len(self.scales) != num_buckets(self.size, size):
            return f"{len(self.scales)} scales for {num_buckets(self.size, size)} buckets"
        if not ((self.scales >= 0) & (self.scales < np.inf) & ~np.signbit(self.scales)).all():
            return "a scale is not a finite number of 0 or above"
        return "a level is -32768" if (self.levels == -MAX_LEVEL - 1).any() else ""


def num_buckets(size: int, bucket_size: int) -> int:
    """Return how many buckets a tensor of `size` entries has; see `QuantisedBlock`."""
    return -(-size // bucket_size) if bucket_size else min(size, 1)
