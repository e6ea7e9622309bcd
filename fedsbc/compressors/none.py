"""No compression: every entry as float32, or as float16."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import model_validator

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions
from fedsbc.compressors.tensorwise import TensorwiseCompressor
from fedsbc.updates import DenseBlock, HalfBlock


class NoneOptions(CompressorOptions):
    """Options of `none`.

    Attributes:
        name: `none`.
        dtype: what travels; `float16` rounds to nearest and holds at most 65504 in magnitude.
        error_feedback: keep what rounding to float16 left out; float32 leaves nothing out.
    """

    name: Literal["none"] = "none"
    dtype: Literal["float32", "float16"] = "float32"
    error_feedback: bool = False

    @model_validator(mode="after")
    def _check(self) -> "NoneOptions":
        if self.error_feedback and self.dtype == "float32":
            raise ValueError("error_feedback needs dtype float16: float32 leaves nothing out")
        return self


class NoCompression(TensorwiseCompressor):
    """Send every entry: FedAvg and plain SGD.

    Source: McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized
    Data" (arXiv 1602.05629). Deviation: float16 is offered; entries beyond its range are sent as
    its largest number.
    """

    Options: ClassVar[type[CompressorOptions]] = NoneOptions

    def __init__(self, options: NoneOptions) -> None:
        self.options = options

    def block(self, part: Vector, generator: np.random.Generator) -> DenseBlock | HalfBlock:
        """Return a `DenseBlock` or a `HalfBlock`."""
        if self.options.dtype == "float32":
            return DenseBlock(part.copy())
        limit = np.float32(np.finfo(np.float16).max)
        with np.errstate(under="ignore"):
            return HalfBlock(np.clip(part, -limit, limit).astype(np.float16))
