"""What a block of each kind consists of, so that like parts of all blocks travel together.

A payload lays the parts of all blocks end to end, one section per kind of part. This file is the
one table of which parts a kind of block has, and how it falls apart and comes together again.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.blocks import (
    Block,
    Flags,
    Positions,
    QuantisedBlock,
    SeededBlock,
)
from fedsbc.coding.runs import Symbols


class Extent(IntEnum):
    """For which entries of a tensor a part has a number."""

    NONE = 0
    KEPT = 1
    ALL = 2


NOTHING: dict[str, Any] = {
    "positions": np.zeros(0, np.int64),
    "scalars": np.zeros(0, np.float32),
    "floats": np.zeros(0, np.float32),
    "halves": np.zeros(0, np.float16),
    "negative": np.zeros(0, np.bool_),
    "magnitudes": np.zeros(0, np.uint32),
}
"""A part that a kind does not have, by its name in `Parts`, in the order there."""


class Parts(NamedTuple):
    """One block taken apart. A part that the kind does not have is empty.

    Attributes:
        size: entries of the tensor.
        tensor: number of the tensor in its layout.
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
    tensor: int
    kept: int
    positions: Positions = NOTHING["positions"]
    scalars: Vector = NOTHING["scalars"]
    floats: Vector = NOTHING["floats"]
    halves: NDArray[np.float16] = NOTHING["halves"]
    negative: Flags = NOTHING["negative"]
    magnitudes: Symbols = NOTHING["magnitudes"]
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
    def name(self) -> str:
        """The kind in words, for people: 'sparse mean'."""
        words = re.findall("[A-Z][a-z]+", self.block.__name__)
        return " ".join(words[:-1]).lower()

    @property
    def counted(self) -> bool:
        """Whether the number of kept entries travels; otherwise all are kept."""
        return self.positions is Extent.KEPT or self.block is SeededBlock

    @property
    def quantised(self) -> bool:
        """Whether levels travel."""
        return self.block is QuantisedBlock
