"""The kinds of block on the wire: how each falls into parts and comes together again."""

from typing import Any

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.blocks import (
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
)
from fedsbc.payload.parts import Extent, Kind, Parts


def _scalars(block: Any, *values: np.float32) -> Vector:
    return np.array(values if block.num_kept else (), np.float32)


def _scalar(parts: Parts, number: int = 0) -> np.float32:
    return parts.scalars[number] if parts.kept else np.float32(0)


def _take_levels(block: QuantisedBlock) -> dict[str, Any]:
    positions = np.flatnonzero(block.levels)
    levels = block.levels[positions]
    return {
        "positions": positions,
        "scalars": block.scales,
        "negative": levels < 0,
        "magnitudes": np.abs(levels).astype(np.uint32),
        "bucket_size": block.bucket_size,
    }


def _make_levels(p: Parts) -> QuantisedBlock:
    levels = np.zeros(p.size, np.int16)
    kept = p.magnitudes.astype(np.int16)
    levels[p.positions] = np.where(p.negative, -kept, kept)
    return QuantisedBlock(levels, p.scalars, p.bucket_size)


def _take_two_means(block: SparseTwoMeanBlock | TwoMeanBlock) -> dict[str, Any]:
    scalars = _scalars(block, block.positive_mean, block.negative_mean)
    return {"negative": block.negative, "scalars": scalars}


KINDS: tuple[Kind, ...] = (
    Kind(
        1,
        DenseBlock,
        lambda b: {"floats": b.values},
        lambda p: DenseBlock(p.floats),
        floats=Extent.ALL,
    ),
    Kind(
        2,
        HalfBlock,
        lambda b: {"halves": b.values},
        lambda p: HalfBlock(p.halves),
        halves=Extent.ALL,
    ),
    Kind(
        3,
        SparseMeanBlock,
        lambda b: {"positions": b.positions, "scalars": _scalars(b, b.mean)},
        lambda p: SparseMeanBlock(p.size, p.positions, _scalar(p)),
        positions=Extent.KEPT,
        num_scalars=1,
    ),
    Kind(
        4,
        SparseSignBlock,
        lambda b: {
            "positions": b.positions,
            "negative": b.negative,
            "scalars": _scalars(b, b.mean),
        },
        lambda p: SparseSignBlock(p.size, p.positions, p.negative, _scalar(p)),
        positions=Extent.KEPT,
        negative=Extent.KEPT,
        num_scalars=1,
    ),
    Kind(
        5,
        SparseTwoMeanBlock,
        lambda b: {"positions": b.positions, **_take_two_means(b)},
        lambda p: SparseTwoMeanBlock(p.size, p.positions, p.negative, _scalar(p), _scalar(p, 1)),
        positions=Extent.KEPT,
        negative=Extent.KEPT,
        num_scalars=2,
    ),
    Kind(
        6,
        SparseFloatBlock,
        lambda b: {"positions": b.positions, "floats": b.values},
        lambda p: SparseFloatBlock(p.size, p.positions, p.floats),
        positions=Extent.KEPT,
        floats=Extent.KEPT,
    ),
    Kind(
        7,
        SeededBlock,
        lambda b: {"floats": b.values, "seed": b.seed},
        lambda p: SeededBlock(p.size, p.seed, p.tensor, p.floats),
        floats=Extent.KEPT,
    ),
    Kind(
        8,
        SignBlock,
        lambda b: {"negative": b.negative, "scalars": _scalars(b, b.scale)},
        lambda p: SignBlock(p.negative, _scalar(p)),
        negative=Extent.ALL,
        num_scalars=1,
    ),
    Kind(
        9,
        TwoMeanBlock,
        _take_two_means,
        lambda p: TwoMeanBlock(p.negative, _scalar(p), _scalar(p, 1)),
        negative=Extent.ALL,
        num_scalars=2,
    ),
    Kind(
        10,
        QuantisedBlock,
        _take_levels,
        _make_levels,
        positions=Extent.KEPT,
        negative=Extent.KEPT,
    ),
)

BY_CODE: dict[int, Kind] = {kind.code: kind for kind in KINDS}
BY_BLOCK: dict[type, Kind] = {kind.block: kind for kind in KINDS}
