"""What every block can do, and how two blocks are compared."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.layout import is_finite

Positions = NDArray[np.int64]
"""Strictly increasing entry numbers within one tensor, shape (k,), dtype int64."""

Flags = NDArray[np.bool_]
"""One flag per entry, dtype bool."""

_CHUNK = 1 << 16  # entries: the temporaries of one chunk stay in the L2 cache


@runtime_checkable
class Block(Protocol):
    """The compressed change of one tensor of `size` entries."""

    @property
    def size(self) -> int:
        """Number of entries of the tensor."""

    @property
    def num_kept(self) -> int:
        """Number of entries that the block carries."""

    def add_to(self, accumulator: Vector, scale: float = 1.0) -> None:
        """Add `scale` times the block to a float32 vector of shape (size,), in place."""

    def problem(self) -> str:
        """Say what makes the values of the block unfit to be sent; '' if nothing does."""


class Bitwise:
    """Equality of dataclasses that hold arrays: same type, and every field equal bit for bit."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]  # a dataclass
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)


def _same(first: Any, second: Any) -> bool:
    a, b = np.asarray(first), np.asarray(second)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def chunks(size: int) -> Iterator[slice]:
    """Cut `size` entries into slices that are small enough for temporaries in the cache."""
    for start in range(0, size, _CHUNK):
        yield slice(start, min(start + _CHUNK, size))


def finite_problem(values: Vector) -> str:
    """Say that a float32 value is not finite; '' if all are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return "" if is_finite(values) else "a value is not finite"
