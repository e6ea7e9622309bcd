"""What a block of each kind consists of, so that like parts of all blocks travel together.

A payload lays the parts of all blocks end to end, one section per kind of part. This file is the
one table of which parts a kind of block has, and how it falls apart and comes together again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.blocks import (
    Block,
    DenseBlock,
    Flags,
    HalfBlock,
    Positions,
    QuantisedBlock,
    SeededBlock,
    SignBlock,
    SparseFloatBlock,
    SparseMeanBlock,
    SparseSignBlock,
    SparseTwoMeanBlock,
    TwoMeanBlock,
)
from fedsbc.coding.runs import Symbols


class Extent(IntEnum):
    """For which entries of a tensor a part has a number."""

    NONE = 0
    KEPT = 1
    ALL = 2


_NOTHING: Any = {kind: np.zeros(0, kind) for kind in ("i8", "f4", "f2", "?", "u4")}


@dataclass
class Parts:
    """One block taken apart. A part that the kind does not have is empty.

    Attributes:
        size: entries of the tensor.
        index: number of the tensor in its layout.
        kept: entries that the block carries.
        positions: int64, of the kept entries.
        scalars: float32, values that hold for the whole block or a bucket of it.
        floats: float32.
        halves: float16.
        negative: bool, signs.
        magnitudes: uint32, absolute levels of the kept entries.
        bucket_size: entries per scalar, 0 for all.
        seed: what the positions are drawn from.
    """

    size: int
    index: int
    kept: int
    positions: Positions = field(default_factory=lambda: _NOTHING["i8"])
    scalars: Vector = field(default_factory=lambda: _NOTHING["f4"])
    floats: Vector = field(default_factory=lambda: _NOTHING["f4"])
    halves: NDArray[np.float16] = field(default_factory=lambda: _NOTHING["f2"])
    negative: Flags = field(default_factory=lambda: _NOTHING["?"])
    magnitudes: Symbols = field(default_factory=lambda: _NOTHING["u4"])
    bucket_size: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Kind:
    """One kind of block on the wire.

    Attributes:
        code: its number, which never changes.
        block: its class.
        positions: KEPT if coded positions travel, and with them their number.
        floats: entries with a float32.
        halves: entries with a float16.
        negative: entries with a sign bit.
        num_scalars: float32 values of a block that keeps an entry.
        take: block to parts, without size, index and kept.
        make: parts to block.
    """

    code: int
    block: type[Block]
    take: Callable[[Any], dict[str, Any]]
    make: Callable[[Parts], Block]
    positions: Extent = Extent.NONE
    floats: Extent = Extent.NONE
    halves: Extent = Extent.NONE
    negative: Extent = Extent.NONE
    num_scalars: int = 0

    @property
    def counted(self) -> bool:
        """Whether the number of kept entries travels; otherwise all are kept."""
        return self.positions is Extent.KEPT or self.block is SeededBlock

    @property
    def quantised(self) -> bool:
        """Whether levels travel."""
        return self.block is QuantisedBlock


def _scalars(block: Any, *values: np.float32) -> Vector:
    return np.array(values if block.num_kept else (), np.float32)


def _scalar(parts: Parts, number: int = 0) -> np.float32:
    return np.float32(parts.scalars[number] if parts.kept else 0.0)


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
        lambda p: SeededBlock(p.size, p.seed, p.index, p.floats),
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
