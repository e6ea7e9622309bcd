"""GaussianK: a threshold from mean and deviation, as if the change were normally distributed."""

from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions, Scope, SparseOptions
from fedsbc.compressors.thresholds import ThresholdCompressor, exceeding
from fedsbc.selection import largest_of, where
from fedsbc.updates import Positions


class GaussianKOptions(SparseOptions):
    """Options of `gaussiank`.

    Attributes:
        name: `gaussiank`.
        scope: the source selects over the whole model.
        corrections: how often the threshold may be corrected. 3 as in the paper; the published
            program makes a third one without using it, which is 2 here.
        max_ratio: of more than max_ratio * k entries the largest alone are sent; None: all are.
    """

    name: Literal["gaussiank"] = "gaussiank"
    scope: Scope = "model"
    corrections: Annotated[int, Field(ge=0)] = 3
    max_ratio: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None


class GaussianK(ThresholdCompressor):
    """Send what exceeds mean - deviation * quantile(k / 2n), corrected a few times.

    The threshold is halved while fewer than 2k/3 entries exceed it, and grows by half while more
    than 4k/3 do. The number of entries is that of the source, far from k on some data.

    Source: Shi et al., "Understanding Top-k Sparsification in Distributed Deep Learning" (arXiv
    1911.08772), Algorithm 1. Deviations: zeros are never sent, where a threshold below zero
    would send all; `max_ratio` and `scope: tensor` are offered.
    """

    Options: ClassVar[type[CompressorOptions]] = GaussianKOptions

    def __init__(self, options: GaussianKOptions) -> None:
        self.options: GaussianKOptions = options

    def choose(self, magnitudes: Vector, k: int, vector: Vector) -> Positions:
        """Return what exceeds the corrected threshold, see `ThresholdCompressor`."""
        threshold = gaussian_threshold(vector, k)
        flags = exceeding(magnitudes, threshold)
        for _ in range(self.options.corrections):
            count = int(np.count_nonzero(flags))
            if 3 * count < 2 * k:
                threshold *= 0.5
            elif 3 * count > 4 * k:
                threshold *= 1.5
            else:
                break
            flags = exceeding(magnitudes, threshold)
        if self.options.max_ratio is None:
            return where(flags)
        return largest_of(magnitudes, flags, int(Fraction(repr(self.options.max_ratio)) * k))


def gaussian_threshold(vector: Vector, k: int) -> float:
    """Return the magnitude that k of n normal entries exceed, mean - deviation * quantile(k / 2n).

    Args:
        vector: float32, shape (n,), n > 0.
        k: 1 to n.

    Source: GaussianK, Algorithm 1: both sides of a normal distribution, hence the half; the mean
    is added once, as the source does, though it moves the sides apart.
    """
    from statistics import NormalDist

    deviation = float(np.std(vector, dtype=np.float64, ddof=1)) if len(vector) > 1 else 0.0
    quantile = NormalDist().inv_cdf(k / len(vector) / 2)
    return float(np.mean(vector, dtype=np.float64)) - deviation * quantile
