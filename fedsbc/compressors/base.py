"""The contract of a compressor: `compress(vector, layout, state, generator) -> (update, state)`.

A compressor is pure: state in, state out, no attribute changes. Error feedback (the residual) is
not its business: `fedsbc.feedback` adds it before and keeps what was left out after.
"""

from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.layout import Layout
from fedsbc.options import Options
from fedsbc.updates import Update

State: TypeAlias = dict[str, NDArray[Any]]
"""Named arrays that a compressor keeps between two rounds; `{}` for most. Never shared."""


class CompressorOptions(Options):
    """What every scheme has in a config beside its own options.

    Attributes:
        name: the scheme; subclasses narrow it to a `Literal`.
        error_feedback: keep what was left out and add it to the next change.
    """

    name: str
    error_feedback: bool = True


class Compressor(Protocol):
    """One scheme. Instances are made from their options and are immutable."""

    Options: ClassVar[type[CompressorOptions]]

    def __init__(self, options: Any) -> None:
        """Take an instance of the scheme's own `Options`."""

    def init_state(self, layout: Layout) -> State:
        """Return the state before the first round; `{}` if there is none."""

    def compress(
        self, vector: Vector, layout: Layout, state: State, generator: np.random.Generator
    ) -> tuple[Update, State]:
        """Compress a change of the model.

        Args:
            vector: the change, float32, shape (d,); read only.
            layout: the tensors of the vector.
            state: what `init_state` or the previous call returned; read only.
            generator: the only source of randomness.

        Raises:
            UpdateError: the vector is not finite.
        """
