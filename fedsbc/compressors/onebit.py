"""1-bit SGD: the sign of every entry, and the mean of each sign."""

from typing import ClassVar, Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions
from fedsbc.compressors.tensorwise import TensorwiseCompressor
from fedsbc.updates import TwoMeanBlock


class OneBitOptions(CompressorOptions):
    """Options of `onebit`.

    Attributes:
        name: `onebit`.
    """

    name: Literal["onebit"] = "onebit"


class OneBit(TensorwiseCompressor):
    """Send one bit for every entry and two values for every tensor.

    The values are the means of the entries that they stand for, which has the least squared
    error; entries of zero and above share one, those below zero the other.

    Source: Seide et al., "1-Bit Stochastic Gradient Descent and its Application to Data-Parallel
    Distributed Training of Speech DNNs" (Interspeech 2014), section 3. Deviation: the values are
    per tensor, not per column of a matrix.
    """

    Options: ClassVar[type[CompressorOptions]] = OneBitOptions

    def __init__(self, options: OneBitOptions) -> None:
        self.options = options

    def block(self, part: Vector, generator: np.random.Generator) -> TwoMeanBlock:
        """Return a `TwoMeanBlock`."""
        negative = part < 0
        num_negative = int(np.count_nonzero(negative))
        low = np.sum(np.minimum(part, 0), dtype=np.float64)
        high = np.sum(np.maximum(part, 0), dtype=np.float64)
        return TwoMeanBlock(
            negative,
            positive_mean=np.float32(high / max(len(part) - num_negative, 1)),
            negative_mean=np.float32(low / max(num_negative, 1)),
        )
