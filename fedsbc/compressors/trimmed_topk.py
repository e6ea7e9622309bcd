"""Trimmed top-k: thresholds between mean and maximum, the first that lets k entries through."""

from typing import ClassVar, Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions, SparseOptions
from fedsbc.compressors.thresholds import ThresholdCompressor, exceeding
from fedsbc.selection import largest_of, where
from fedsbc.updates import Positions

STEPS = (0.8, 0.6, 0.4, 0.2, 0.0)
"""Thresholds tried, as fractions of the way from the mean magnitude up to the largest."""


class TrimmedTopKOptions(SparseOptions):
    """Options of `trimmed-topk`.

    Attributes:
        name: `trimmed-topk`.
        exact: select the k largest of what passed, as RedSync does; false: send all that passed,
            as the GaussianK authors' baseline does.
    """

    name: Literal["trimmed-topk"] = "trimmed-topk"
    exact: bool = True


class TrimmedTopK(ThresholdCompressor):
    """Lower the threshold in fifths from the largest magnitude to the mean until k pass.

    Source: Fang et al., "RedSync: Reducing Synchronization Bandwidth for Distributed Deep Learning
    Training System" (arXiv 1808.04357), Algorithm 2. Deviations: where fewer than k exceed the
    mean, all non-zeros pass; ties go to the lowest index.
    """

    Options: ClassVar[type[CompressorOptions]] = TrimmedTopKOptions

    def __init__(self, options: TrimmedTopKOptions) -> None:
        self.options: TrimmedTopKOptions = options

    def choose(self, magnitudes: Vector, k: int, vector: Vector) -> Positions:
        """Return the k largest of what passed, or all of it, see `ThresholdCompressor`."""
        middle = float(np.mean(magnitudes, dtype=np.float64))
        span = float(magnitudes.max()) - middle
        for step in STEPS:
            flags = exceeding(magnitudes, middle + step * span)
            if np.count_nonzero(flags) >= k:
                break
        else:
            flags = magnitudes > 0
        return largest_of(magnitudes, flags, k) if self.options.exact else where(flags)
