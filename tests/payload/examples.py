"""Random updates of every kind of block, from a seed."""

import numpy as np

from fedsbc.layout import Layout
from fedsbc.updates import (
    Block,
    DenseBlock,
    HalfBlock,
    QuantisedBlock,
    SeededBlock,
    SignBlock,
    SparseFloatBlock,
    SparseMeanBlock,
    SparseSignBlock,
    SparseTwoMeanBlock,
    TwoMeanBlock,
    Update,
)

KINDS: tuple[type[Block], ...] = (
    DenseBlock,
    HalfBlock,
    SparseMeanBlock,
    SparseSignBlock,
    SparseTwoMeanBlock,
    SparseFloatBlock,
    SeededBlock,
    SignBlock,
    TwoMeanBlock,
    QuantisedBlock,
)
SIZES = (0, 1, 2, 3, 7, 8, 9, 63, 255, 256, 1000)
DENSITIES = (0.0, 0.001, 0.01, 0.1, 0.4, 0.7, 1.0)
SEED = 0x8123456789ABCDEF


def layout_of(sizes: list[int]) -> Layout:
    """Return a layout of flat tensors of the given sizes."""
    return Layout.of((f"tensor{number}", (size,)) for number, size in enumerate(sizes))


def random_update(
    rng: np.random.Generator, sizes: list[int], kinds: list[type[Block]], density: float
) -> Update:
    """Return an update with a block of each kind in turn."""
    layout = layout_of(sizes)
    blocks = [
        random_block(rng, kinds[index % len(kinds)], index, size, density)
        for index, size in enumerate(sizes)
    ]
    return Update(layout, blocks)


def random_block(
    rng: np.random.Generator, kind: type[Block], index: int, size: int, density: float
) -> Block:
    """Return a block of that kind."""
    if kind is DenseBlock:
        return DenseBlock(rng.normal(size=size).astype(np.float32))
    if kind is HalfBlock:
        return HalfBlock(rng.normal(size=size).astype(np.float16))
    if kind in (SignBlock, TwoMeanBlock):
        return _signs(rng, kind, size)
    if kind is QuantisedBlock:
        return _levels(rng, size, density)
    positions = np.flatnonzero(rng.random(size) < density)
    if kind is SeededBlock:
        return SeededBlock(size, SEED, index, _floats(rng, len(positions)))
    return _sparse(rng, kind, size, positions)


def _floats(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.normal(size=count).astype(np.float32)


def _sparse(rng: np.random.Generator, kind: type[Block], size: int, positions: np.ndarray) -> Block:
    mean = np.float32(rng.choice([0.5, 0.25, rng.random() + 0.1]) if len(positions) else 0.0)
    negative = rng.random(len(positions)) < 0.5
    if kind is SparseMeanBlock:
        return SparseMeanBlock(size, positions, -mean if len(positions) else mean)
    if kind is SparseSignBlock:
        return SparseSignBlock(size, positions, negative, mean)
    if kind is SparseTwoMeanBlock:
        return SparseTwoMeanBlock(
            size,
            positions,
            negative,
            mean if (~negative).any() else np.float32(0),
            np.float32(-2.5) if negative.any() else np.float32(0),
        )
    return SparseFloatBlock(size, positions, _floats(rng, len(positions)))


def _signs(rng: np.random.Generator, kind: type[Block], size: int) -> Block:
    negative = rng.random(size) < rng.choice([0.0, 0.5, 1.0])
    if kind is SignBlock:
        return SignBlock(negative, np.float32(rng.choice([0.0, 0.125, 3.0]) if size else 0.0))
    high = np.float32(rng.random() if (~negative).any() else 0.0)
    low = np.float32(-rng.random() if negative.any() else 0.0)
    return TwoMeanBlock(negative, high, low)


def _levels(rng: np.random.Generator, size: int, density: float) -> Block:
    bucket_size = int(rng.choice([0, 2, 128]))
    buckets = -(-size // bucket_size) if bucket_size else min(size, 1)
    spread = rng.choice([0.6, 2.0, 40.0, 8000.0])
    levels = np.round(np.clip(rng.normal(size=size) * spread, -32767, 32767)).astype(np.int16)
    levels[rng.random(size) >= density] = 0
    if rng.random() < 0.3:
        levels = np.sign(levels)
    return QuantisedBlock(levels, rng.random(buckets).astype(np.float32), bucket_size)
