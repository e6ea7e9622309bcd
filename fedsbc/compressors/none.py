"""No compression: every entry as float32."""

from typing import ClassVar, Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions, State
from fedsbc.compressors.scopes import check_vector
from fedsbc.layout import Layout
from fedsbc.updates import DenseBlock, Update


class NoneOptions(CompressorOptions):
    """Options of `none`.

    Attributes:
        name: `none`.
        error_feedback: always false: nothing is left out.
    """

    name: Literal["none"] = "none"
    error_feedback: Literal[False] = False


class NoCompression:
    """Send every entry as float32, 32 bits each: FedAvg and plain SGD."""

    Options: ClassVar[type[CompressorOptions]] = NoneOptions

    def __init__(self, options: NoneOptions) -> None:
        self.options = options

    def init_state(self, layout: Layout) -> State:
        """Return no state."""
        return {}

    def compress(
        self, vector: Vector, layout: Layout, state: State, generator: np.random.Generator
    ) -> tuple[Update, State]:
        """Copy a float32 vector of shape (d,) into one dense block per tensor.

        Raises:
            UpdateError: the vector is not finite.
        """
        check_vector(vector, layout)
        return Update(layout, [DenseBlock(part) for part in layout.split(vector.copy())]), state
