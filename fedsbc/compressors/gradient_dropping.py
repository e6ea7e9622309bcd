"""Gradient dropping: a threshold from a small sample, everything beyond it as float32."""

import math
from typing import ClassVar, Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions, Scope, SparseOptions
from fedsbc.compressors.thresholds import ThresholdCompressor
from fedsbc.options import Density
from fedsbc.selection import num_to_keep, where
from fedsbc.updates import Positions


class GradientDroppingOptions(SparseOptions):
    """Options of `gradient-dropping`.

    Attributes:
        name: `gradient-dropping`.
        scope: the source has one threshold for the whole model.
        sample: fraction of the entries from which the threshold is estimated.
    """

    name: Literal["gradient-dropping"] = "gradient-dropping"
    scope: Scope = "model"
    sample: Density = 0.001


class GradientDropping(ThresholdCompressor):
    """Send what is at least as large as the sample's entry of rank density.

    Source: Aji and Heafield, "Sparse Communication for Distributed Gradient Descent" (arXiv
    1704.05021), section 3. Deviations: the sample is every s-th entry, so that no randomness is
    needed, and has at least 1 / density entries; zeros are never sent.
    """

    Options: ClassVar[type[CompressorOptions]] = GradientDroppingOptions

    def __init__(self, options: GradientDroppingOptions) -> None:
        self.options: GradientDroppingOptions = options

    def choose(self, magnitudes: Vector, k: int, vector: Vector) -> Positions:
        """Return what passes the sample's threshold, see `ThresholdCompressor`."""
        threshold = sampled_threshold(magnitudes, self.options.density, self.options.sample)
        return where((magnitudes >= threshold) & (magnitudes > 0))


def sampled_threshold(magnitudes: Vector, density: float, fraction: float) -> np.float32:
    """Return the magnitude of rank ceil(density * m) in a strided sample of m entries.

    Args:
        magnitudes: float32, shape (n,), n > 0.
        density: fraction of the entries that shall pass, in (0, 1].
        fraction: of the entries that are sampled, in (0, 1]; at least 1 / density are.
    """
    wanted = max(fraction * len(magnitudes), 1 / density)
    stride = max(1, math.floor(len(magnitudes) / wanted))
    sample = magnitudes[::stride]
    rank = len(sample) - num_to_keep(density, len(sample))
    return np.float32(np.partition(sample, rank)[rank])
