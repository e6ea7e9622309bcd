"""Threshold search: bisection between mean and maximum until between k and 2k entries pass."""

from typing import ClassVar, Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions, SparseOptions
from fedsbc.compressors.thresholds import ThresholdCompressor, exceeding
from fedsbc.options import PositiveFloat
from fedsbc.selection import largest_of, where
from fedsbc.updates import Positions


class ThresholdSearchOptions(SparseOptions):
    """Options of `threshold-search`.

    Attributes:
        name: `threshold-search`.
        exact: select the k largest of what passed; false: send all that passed, as the source
            does.
        epsilon: stop when the bounds, fractions of the way from mean to maximum, are so close.
    """

    name: Literal["threshold-search"] = "threshold-search"
    exact: bool = False
    epsilon: PositiveFloat = 0.001


class ThresholdSearch(ThresholdCompressor):
    """Bisect the threshold until at least k and at most 2k entries exceed it.

    Source: Fang et al., "RedSync: Reducing Synchronization Bandwidth for Distributed Deep Learning
    Training System" (arXiv 1808.04357), Algorithm 3. Deviations: where bisection ends with fewer
    than k, what passed the last lower bound is sent, and where that is the mean and fewer than k
    exceed it, all non-zeros pass.
    """

    Options: ClassVar[type[CompressorOptions]] = ThresholdSearchOptions

    def __init__(self, options: ThresholdSearchOptions) -> None:
        self.options: ThresholdSearchOptions = options

    def choose(self, magnitudes: Vector, k: int, vector: Vector) -> Positions:
        """Return what exceeds the threshold, or its k largest, see `ThresholdCompressor`."""
        middle = float(np.mean(magnitudes, dtype=np.float64))
        span = float(magnitudes.max()) - middle
        low, high = 0.0, 1.0
        flags = exceeding(magnitudes, middle)
        if np.count_nonzero(flags) < k:
            flags, high = magnitudes > 0, 0.0
        while high - low > self.options.epsilon:
            ratio = (low + high) / 2
            above = exceeding(magnitudes, middle + ratio * span)
            count = np.count_nonzero(above)
            if count < k:
                high = ratio
                continue
            low, flags = ratio, above
            if count <= 2 * k:
                break
        return largest_of(magnitudes, flags, k) if self.options.exact else where(flags)
