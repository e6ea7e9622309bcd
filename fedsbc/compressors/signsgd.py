"""signSGD: the sign of every entry."""

from typing import ClassVar, Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions
from fedsbc.compressors.tensorwise import TensorwiseCompressor
from fedsbc.options import PositiveFloat
from fedsbc.updates import SignBlock


class SignSgdOptions(CompressorOptions):
    """Options of `signsgd`; it belongs with `aggregation: vote`.

    Attributes:
        name: `signsgd`.
        step: by how much a sign moves a weight; the source's learning rate.
        error_feedback: always false: the source has none, see `ef-signsgd`.
    """

    name: Literal["signsgd"] = "signsgd"
    step: PositiveFloat = 0.001
    error_feedback: Literal[False] = False


class SignSgd(TensorwiseCompressor):
    """Send one bit for every entry.

    Source: Bernstein et al., "signSGD: Compressed Optimisation for Non-Convex Problems" (arXiv
    1802.04434), Algorithm 3 (majority vote). Deviations: what is signed is the change of the
    weights over the local steps; zero counts as positive, for a bit has no third value; the step
    travels with the signs, 32 bits.
    """

    Options: ClassVar[type[CompressorOptions]] = SignSgdOptions

    def __init__(self, options: SignSgdOptions) -> None:
        self.options = options

    def block(self, part: Vector, generator: np.random.Generator) -> SignBlock:
        """Return a `SignBlock` with the step as its scale."""
        return SignBlock(part < 0, np.float32(self.options.step if len(part) else 0))
