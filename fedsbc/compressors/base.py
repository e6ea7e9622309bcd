"""The contract of a compressor: `compress(vector, layout, state, generator) -> (update, state)`.

A compressor is pure: state in, state out, no attribute changes. Error feedback (the residual) is
not its business: `fedsbc.feedback` adds it before and keeps what was left out after.
"""

from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.errors import UpdateError
from fedsbc.layout import Layout, is_finite
from fedsbc.options import Density, Options
from fedsbc.updates import Update

State: TypeAlias = dict[str, NDArray[Any]]
"""Named arrays that a compressor keeps between two rounds; `{}` for most. Never shared."""

Scope: TypeAlias = Literal["tensor", "model"]
"""`tensor`: every tensor is selected by itself; `model`: one selection over the flat vector."""


class CompressorOptions(Options):
    """What every scheme has in a config beside its own options.

    Attributes:
        name: the scheme; subclasses narrow it to a `Literal`.
        error_feedback: keep what was left out and add it to the next change.
    """

    name: str
    error_feedback: bool = True


class SparseOptions(CompressorOptions):
    """What every scheme that selects k entries has in a config.

    Attributes:
        density: fraction p = k/d of the entries that are sent; k = max(1, ceil(density * size)).
        scope: select in each tensor, or once over the whole model.
    """

    density: Density
    scope: Scope = "tensor"


class Compressor(Protocol):
    """One scheme. Instances are made from their options and are immutable."""

    Options: ClassVar[type[CompressorOptions]]

    def __init__(self, options: Any) -> None:
        """Take an instance of the scheme's own `Options`."""

    @property
    def options(self) -> CompressorOptions:
        """The options that the instance was made from."""

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


def check_finite(vector: Vector, layout: Layout) -> None:
    """Refuse a vector of shape (d,) that holds NaN or infinity.

    Raises:
        UpdateError: names the first such entry and its tensor.
    """
    if is_finite(vector):
        return
    entry = int(np.flatnonzero(~np.isfinite(vector))[0])
    tensor = next(t for t in layout.tensors if t.slice.start <= entry < t.slice.stop)
    raise UpdateError(
        f"the change is not finite: entry {entry - tensor.offset} of tensor '{tensor.name}' is "
        f"{vector[entry]}; expected finite float32 (did the training diverge?)"
    )
