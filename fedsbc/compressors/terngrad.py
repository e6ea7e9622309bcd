"""TernGrad: every entry -s, 0 or +s at random, s the largest magnitude."""

import math
from typing import ClassVar, Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions
from fedsbc.compressors.levels import LARGEST, random_levels, safe_scale
from fedsbc.compressors.tensorwise import TensorwiseCompressor
from fedsbc.options import PositiveFloat
from fedsbc.updates import QuantisedBlock


class TernGradOptions(CompressorOptions):
    """Options of `terngrad`.

    Attributes:
        name: `terngrad`.
        clip_deviations: clip to so many standard deviations (about zero) first, which shrinks s;
            None: never. Clipping makes the result biased.
        error_feedback: always false: the source has none.
    """

    name: Literal["terngrad"] = "terngrad"
    clip_deviations: PositiveFloat | None = 2.5
    error_feedback: Literal[False] = False


class TernGrad(TensorwiseCompressor):
    """Send a level of -1, 0 or 1 for every entry and one scale for every tensor.

    An entry g is s * sign(g) with probability |g| / s and 0 otherwise.

    Source: Wen et al., "TernGrad: Ternary Gradients to Reduce Communication in Distributed Deep
    Learning" (arXiv 1705.07878), section 3, and 3.3 for layer-wise clipping at 2.5 standard
    deviations. Deviations: every client has its own scale (no scaler sharing); the deviation is
    about zero, so that a constant tensor is not clipped to nothing.
    """

    Options: ClassVar[type[CompressorOptions]] = TernGradOptions

    def __init__(self, options: TernGradOptions) -> None:
        self.options = options

    def block(self, part: Vector, generator: np.random.Generator) -> QuantisedBlock:
        """Return a `QuantisedBlock` of one bucket."""
        if len(part) == 0:
            return QuantisedBlock(np.zeros(0, np.int16), np.zeros(0, np.float32))
        if self.options.clip_deviations is not None:
            squares = np.square(part, dtype=np.float64)
            bound = self.options.clip_deviations * math.sqrt(float(np.mean(squares)))
            limit = np.float32(min(bound, LARGEST))
            part = np.clip(part, -limit, limit)
        scale = safe_scale(np.max(np.abs(part), keepdims=True).astype(np.float64))
        return QuantisedBlock(random_levels(part, scale, 1, generator), scale)
