"""Where randomness comes from: one generator per purpose, never a global one.

`generator(seed, stream, *ids)` depends on its arguments alone, so that a draw is the same in
whatever process, order or engine it is made. Streams are numbered once and never renumbered.
"""

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What a generator is for; the number goes into the seed and never changes."""

    MODEL = 1
    PARTITION = 2
    COHORT = 3
    BATCHES = 4
    TORCH = 5
    COMPRESS_UP = 6
    COMPRESS_DOWN = 7
    FAILURES = 8
    NETWORK = 9
    AVAILABILITY = 10


def seed_sequence(seed: int, stream: Stream, *ids: int) -> np.random.SeedSequence:
    """Return the seed sequence of (seed, stream, ids); all are non-negative integers."""
    return np.random.SeedSequence([seed, int(stream), *ids])


def generator(seed: int, stream: Stream, *ids: int) -> np.random.Generator:
    """Return the generator of (seed, stream, ids), for example (seed, BATCHES, client, round)."""
    return np.random.Generator(np.random.PCG64(seed_sequence(seed, stream, *ids)))


def torch_seed(seed: int, stream: Stream, *ids: int) -> int:
    """Return a 63-bit seed for torch's global generator."""
    return int(seed_sequence(seed, stream, *ids).generate_state(1, np.uint64)[0] >> 1)
