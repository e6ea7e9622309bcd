"""Aligned memory: one definition, because alignment changes the bytes that training gives."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float32]
"""A flat float32 vector of length d."""

ALIGNMENT_BYTES = 64
"""At batch size 1 the alignment of the parameters alone changes the bytes of a training step."""


def aligned_zeros(size: int, dtype: str = "float32") -> NDArray[np.generic]:
    """Return zeros of shape (size,) whose memory starts at a multiple of 64 bytes."""
    num_bytes = size * np.dtype(dtype).itemsize
    raw = np.zeros(num_bytes + ALIGNMENT_BYTES, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT_BYTES
    return raw[start : start + num_bytes].view(dtype)


def aligned_vector(size: int) -> Vector:
    """Return a float32 zero vector of shape (size,), 64-byte aligned."""
    vector = aligned_zeros(size)
    assert vector.dtype == np.float32
    return vector  # type: ignore[return-value]  # the dtype was just asserted
