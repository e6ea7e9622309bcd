"""The layout: which tensor lies where in the flat vector that is a model."""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector, aligned_vector
from fedsbc.lazy import lazy


@dataclass(frozen=True)
class TensorSpec:
    """One tensor of the flat vector.

    Attributes:
        name: its dotted name in the module.
        shape: its shape; `()` is a scalar of size 1.
        offset: index of its first entry in the flat vector.
    """

    name: str
    shape: tuple[int, ...]
    offset: int

    @lazy
    def size(self) -> int:
        """Number of entries; 0 for an empty tensor."""
        return math.prod(self.shape)

    @lazy
    def slice(self) -> slice:
        """Where the tensor lies in the flat vector."""
        return slice(self.offset, self.offset + self.size)


@dataclass(frozen=True)
class Layout:
    """The tensors of a flat float32 vector of length `size`, in order, without gaps."""

    tensors: tuple[TensorSpec, ...]

    @classmethod
    def of(cls, shapes: Iterable[tuple[str, Sequence[int]]]) -> "Layout":
        """Build a layout from (name, shape) pairs, laid out one after the other.

        >>> Layout.of([("weight", (2, 3)), ("bias", (2,))]).size
        8
        """
        tensors, offset = [], 0
        for name, shape in shapes:
            spec = TensorSpec(name, tuple(int(n) for n in shape), offset)
            tensors.append(spec)
            offset += spec.size
        return cls(tuple(tensors))

    @classmethod
    def single(cls, size: int) -> "Layout":
        """Build the layout of one tensor of shape (size,)."""
        return cls.of([("vector", (size,))])

    @lazy
    def size(self) -> int:
        """Length d of the flat vector."""
        return sum(tensor.size for tensor in self.tensors)

    @lazy
    def sizes(self) -> NDArray[np.int64]:
        """Entries of each tensor, shape (n,), int64; read only."""
        sizes = np.array([tensor.size for tensor in self.tensors], np.int64)
        sizes.flags.writeable = False
        return sizes

    @lazy
    def hash(self) -> str:
        """First 16 hex digits (64 bits) of the sha256 over names and shapes in order."""
        described = json.dumps([[t.name, list(t.shape)] for t in self.tensors])
        return hashlib.sha256(described.encode()).hexdigest()[:16]

    def split(self, vector: Vector) -> list[Vector]:
        """Return one flat view per tensor of a vector of shape (d,)."""
        assert vector.shape == (self.size,), f"expected shape ({self.size},), got {vector.shape}"
        return [vector[tensor.slice] for tensor in self.tensors]

    def zeros(self) -> Vector:
        """Return an aligned zero vector of shape (d,)."""
        return aligned_vector(self.size)


def is_finite(vector: Vector) -> bool:
    """Whether a float32 vector of any length holds neither NaN nor infinity.

    One dot product reads the vector once and makes no temporary: a NaN or an infinity makes it
    not finite. So may the overflow of a large finite vector, which is then looked at by entry.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.dot(vector, vector)):
            return True
    return bool(np.isfinite(vector).all())
