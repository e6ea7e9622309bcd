"""EF-signSGD: the sign of every entry times the mean magnitude, with error feedback."""

from typing import ClassVar, Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions
from fedsbc.compressors.tensorwise import TensorwiseCompressor
from fedsbc.updates import SignBlock


class EfSignSgdOptions(CompressorOptions):
    """Options of `ef-signsgd`.

    Attributes:
        name: `ef-signsgd`.
    """

    name: Literal["ef-signsgd"] = "ef-signsgd"


class EfSignSgd(TensorwiseCompressor):
    """Send one bit for every entry and one scale for every tensor, |p|_1 / n.

    Source: Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient Compression
    Schemes" (arXiv 1901.09847), Algorithm 1 and section 6 (layer by layer). Deviation: zero
    counts as positive; what this adds is in the residual and goes out with the next change.
    """

    Options: ClassVar[type[CompressorOptions]] = EfSignSgdOptions

    def __init__(self, options: EfSignSgdOptions) -> None:
        self.options = options

    def block(self, part: Vector, generator: np.random.Generator) -> SignBlock:
        """Return a `SignBlock` with the mean magnitude as its scale."""
        scale = np.mean(np.abs(part), dtype=np.float64) if len(part) else 0.0
        return SignBlock(part < 0, np.float32(scale))
