"""The contract of a compressor: `compress(vector, layout, state, generator) -> (update, state)`.

A compressor is pure: state in, state out, no attribute changes. Error feedback (the residual) is
not its business: `fedsbc.feedback` adds it before and keeps what was left out after.
"""

from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.errors import UpdateError
from fedsbc.layout import Layout
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


@runtime_checkable
class CorrectingCompressor(Compressor, Protocol):
    """A scheme that changes the change itself before the residual is added, such as by momentum."""

    def correct(self, delta: Vector, layout: Layout, state: State) -> tuple[Vector, State]:
        """Return what is to be compressed in place of the change, and the state for `compress`.

        Args:
            delta: the change, float32, shape (d,); read only.
            layout: the tensors of the vector.
            state: what `init_state` or the previous round left; read only.

        Raises:
            UpdateError: the change is not finite.
        """


@runtime_checkable
class SummingCompressor(Compressor, Protocol):
    """A scheme that can add the residual itself, in the pass in which it reads the change."""

    def compress_sum(
        self,
        delta: Vector,
        residual: Vector,
        out: Vector,
        layout: Layout,
        state: State,
        generator: np.random.Generator,
    ) -> tuple[Update, State]:
        """Compress delta + residual just as `compress` would, and write the sum to `out`.

        The caller has numpy's warnings of overflow turned off: the sum is looked at anyway.

        Args:
            delta: the change, float32, shape (d,); read only.
            residual: float32, shape (d,); read only.
            out: float32, shape (d,); may be `delta` itself, never `residual`.
            layout: the tensors of the vectors.
            state: as for `compress`.
            generator: as for `compress`.

        Raises:
            UpdateError: the sum is not finite; what `out` holds is then undefined.
        """


def corrects(compressor: Compressor) -> TypeGuard[CorrectingCompressor]:
    """Whether a scheme is a `CorrectingCompressor`; a look at the protocol takes much longer."""
    return hasattr(compressor, "correct")


def sums_up(compressor: Compressor) -> TypeGuard[SummingCompressor]:
    """Whether a scheme is a `SummingCompressor`."""
    return hasattr(compressor, "compress_sum")


def check_form(vector: Vector, layout: Layout) -> None:
    """Refuse what is not a float32 vector of shape (d,).

    Raises:
        UpdateError: wrong dtype or length.
    """
    if vector.dtype != np.float32 or vector.shape != (layout.size,):
        raise UpdateError(
            f"a change is a float32 vector of shape ({layout.size},), got {vector.dtype} of shape "
            f"{vector.shape}; `as_vector` of fedsbc.compressors converts"
        )


def as_vector(tensor: Any) -> Vector:
    """Return a tensor of any shape and float type as a new float32 vector.

    float16 and bfloat16 are converted exactly, float64 is rounded once (too large gives
    infinity, which every compressor refuses).

    Args:
        tensor: a numpy array, or a torch tensor on any device.

    Raises:
        UpdateError: the tensor is not of a floating type.

    >>> as_vector(np.ones((2, 3), np.float16)).shape
    (6,)
    """
    if not isinstance(tensor, np.ndarray):
        if not tensor.dtype.is_floating_point:
            raise UpdateError(f"a change is of a floating type, got {tensor.dtype}")
        tensor = tensor.detach().cpu().double().numpy()
    if not np.issubdtype(tensor.dtype, np.floating):
        raise UpdateError(f"a change is of a floating type, got {tensor.dtype}")
    with np.errstate(over="ignore"):
        return np.array(tensor, np.float32).reshape(-1)
