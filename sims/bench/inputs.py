"""The changes that are measured: ordinary ones, and those that are hard for a sampled threshold."""

from collections.abc import Callable

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.scan import sample

Draw = Callable[[np.random.Generator, int], Vector]


def _normal(rng: np.random.Generator, size: int) -> Vector:
    return rng.standard_normal(size, dtype=np.float32)


def _heavy_tailed(rng: np.random.Generator, size: int) -> Vector:
    """Student's t with 2 degrees of freedom: a normal over the root of an exponential."""
    scale: Vector = np.sqrt(rng.standard_exponential(size, dtype=np.float32) + np.float32(1e-12))
    return np.divide(_normal(rng, size), scale, dtype=np.float32)


def _hidden(rng: np.random.Generator, size: int) -> Vector:
    """Every entry that the sample may see is larger than those it may not: the worst case."""
    vector = np.abs(_normal(rng, size))
    vector[sample(np.arange(size))] += 100
    return vector


INPUTS: dict[str, Draw] = {
    "normal": _normal,
    "heavy-tailed": _heavy_tailed,
    "one-sided": lambda rng, size: np.abs(_normal(rng, size)),
    "sorted": lambda rng, size: np.sort(_normal(rng, size)),
    "constant": lambda rng, size: np.full(size, 0.5, np.float32),
    "hidden": _hidden,
}
"""Inputs by name; each makes a float32 vector of shape (size,)."""
