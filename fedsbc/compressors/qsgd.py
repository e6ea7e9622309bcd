"""QSGD: every entry a whole multiple of its bucket's norm over s, rounded at random."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from fedsbc.arrays import Vector
from fedsbc.blocks.quantised import MAX_BUCKET_SIZE
from fedsbc.compressors.base import CompressorOptions
from fedsbc.compressors.levels import random_levels, safe_scale
from fedsbc.compressors.tensorwise import TensorwiseCompressor
from fedsbc.updates import MAX_LEVEL, QuantisedBlock


class QsgdOptions(CompressorOptions):
    """Options of `qsgd`.

    Attributes:
        name: `qsgd`.
        levels: s, how many levels there are above zero.
        bucket_size: entries that share a norm, a power of two; 0: all of a tensor.
        norm: `l2` as in the source's theory, or `max` as in its experiments.
        error_feedback: always false: the source has none.
    """

    name: Literal["qsgd"] = "qsgd"
    levels: Annotated[int, Field(ge=1, le=MAX_LEVEL)] = 16
    bucket_size: Annotated[int, Field(ge=0, le=MAX_BUCKET_SIZE)] = 512
    norm: Literal["l2", "max"] = "l2"
    error_feedback: Literal[False] = False

    @field_validator("bucket_size")
    @classmethod
    def _check_bucket_size(cls, value: int) -> int:
        if value == 1 or value & (value - 1):
            raise ValueError(f"bucket_size is 0 or a power of two from 2 on, got {value}")
        return value


class Qsgd(TensorwiseCompressor):
    """Send a level of -s to s for every entry and one scale, norm / s, for every bucket.

    Source: Alistarh et al., "QSGD: Communication-Efficient SGD via Gradient Quantization and
    Encoding" (arXiv 1610.02132), sections 3.1 and 5 (buckets). Deviations: levels are Rice-coded
    where the source uses Elias codes; buckets do not cross tensors.
    """

    Options: ClassVar[type[CompressorOptions]] = QsgdOptions

    def __init__(self, options: QsgdOptions) -> None:
        self.options = options

    def block(self, part: Vector, generator: np.random.Generator) -> QuantisedBlock:
        """Return a `QuantisedBlock`."""
        size = self.options.bucket_size
        if len(part) == 0:
            return QuantisedBlock(np.zeros(0, np.int16), np.zeros(0, np.float32), size)
        scales = safe_scale(self._norms(part, size or len(part)) / self.options.levels)
        each = np.repeat(scales, size or len(part))[: len(part)]
        return QuantisedBlock(
            random_levels(part, each, self.options.levels, generator), scales, size
        )

    def _norms(self, part: Vector, bucket_size: int) -> NDArray[np.float64]:
        starts = np.arange(0, len(part), bucket_size)
        magnitudes = np.abs(part, dtype=np.float64)
        if self.options.norm == "max":
            return np.maximum.reduceat(magnitudes, starts)
        return np.sqrt(np.add.reduceat(np.square(magnitudes), starts))
