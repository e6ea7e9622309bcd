"""Positions that two sides draw from the same 64-bit seed, alike on every machine for ever.

numpy promises the stream of a bit generator but not the algorithm of `Generator.choice`, so a
format that is to be read for ever brings its own: whole-number arithmetic and nothing else.
"""

import numpy as np
from numpy.typing import NDArray

_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, odd: the step of the counter
_MASK = 2**64 - 1


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit words one to one.

    Source: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators (OOPSLA 2014);
        constants of the variant known as SplitMix64.
    """
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _draws(key: int, start: int, count: int, size: int) -> NDArray[np.int64]:
    """Return draws number `start` and on, each uniform in [0, size), shape (count,)."""
    numbers = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    words = _mix(np.uint64(key) + numbers * np.uint64(_GOLDEN))
    high, low = words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)
    scaled = (high * np.uint64(size) + ((low * np.uint64(size)) >> np.uint64(32))) >> np.uint64(32)
    return scaled.astype(np.int64)


def sample_positions(seed: int, index: int, size: int, count: int) -> NDArray[np.int64]:
    """Return a uniformly random set of `count` of `size` entries, shape (count,), increasing.

    The first `count` different draws are the set; of more than half the entries, those that are
    left out are drawn instead. The result is part of the payload format and never changes.

    Args:
        seed: 64 bits, 0 to 2**64 - 1.
        index: number of the tensor in its layout; another index draws another set.
        size: entries of the tensor, below 2**32.
        count: entries to draw, 0 to size.
    """
    assert 0 <= count <= size < 2**32
    if count > size // 2:
        left_out = _distinct(seed, index, size, size - count)
        return np.flatnonzero(~np.isin(np.arange(size), left_out, assume_unique=True))
    return np.sort(_distinct(seed, index, size, count))


def _distinct(seed: int, index: int, size: int, count: int) -> NDArray[np.int64]:
    """Return the first `count` different draws."""
    if count == 0:
        return np.zeros(0, np.int64)
    key = int(_mix(np.array([(seed + _GOLDEN * (index + 1)) & _MASK], np.uint64))[0])
    num_draws = count
    while True:
        draws = _draws(key, 0, num_draws, size)
        values, first = np.unique(draws, return_index=True)
        if len(values) >= count:
            return values[np.argsort(first)[:count]]
        num_draws += 2 * (count - len(values)) + 8
