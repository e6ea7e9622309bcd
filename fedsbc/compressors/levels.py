"""Rounding to whole levels at random, so that the expected level is the exact one."""

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.blocks.base import chunks

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)


def safe_scale(scale: NDArray[np.float64]) -> Vector:
    """Round scales, 0 or above, to float32 without losing one: none becomes 0 or infinite.

    A scale beyond float32 becomes its largest number: every entry is still a level of at most 1.
    """
    return np.where(scale > 0, np.clip(scale, SMALLEST, LARGEST), 0.0).astype(np.float32)


def random_levels(
    part: Vector, scale: Vector, max_level: int, generator: np.random.Generator
) -> NDArray[np.int16]:
    """Round entries / scale up or down at random: E[level * scale] = entry.

    Args:
        part: entries, float32, shape (n,), finite.
        scale: value of level 1 for each entry, float32, shape (n,) or (1,), at least
            |entry| / max_level; 0 where all entries are 0.
        max_level: no level is larger in magnitude; nor does level * scale exceed float32.
        generator: one float32 is drawn for each entry.

    Returns:
        Levels, int16, shape (n,).
    """
    levels = np.empty(len(part), np.int16)
    for place in chunks(len(part)):
        each = scale if len(scale) == 1 else scale[place]
        divisor = np.where(each > 0, each, np.float32(1)).astype(np.float64)
        most = np.minimum(np.floor(LARGEST / divisor), max_level)
        exact = np.abs(part[place]) / divisor
        exact += generator.random(len(exact), dtype=np.float32)
        levels[place] = np.copysign(np.minimum(np.floor(exact), most), part[place])
    return levels
