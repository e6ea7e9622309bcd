"""The sum of a cohort's updates: one definition, whatever the order of arrival.

The cohort, sorted by client id, is cut into blocks of 16. Within a block updates are added in
that order to a zero vector; the blocks' sums are added in order. Float32 throughout, so that the
sum is the same bytes on every engine. Whoever is missing is skipped.

An update is added, and freed, as soon as those before it in its block are settled. So a round
holds one sum for each block that an earlier one keeps waiting, and the updates that wait for an
earlier client of their own block: 15 for each block that is not complete.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.layout import Layout
from fedsbc.updates import Update

BLOCK_CLIENTS = 16

Aggregation = Literal["mean", "examples", "vote"]


@dataclass
class _Sums:
    """What is summed: the updates or their signs, and for `vote` the magnitudes beside."""

    total: Vector
    magnitude: Vector | None

    def add(self, update: Update, weight: float) -> None:
        if self.magnitude is None:
            update.add_to(self.total, weight)
            return
        dense = update.to_dense()
        self.total += np.sign(dense)
        self.magnitude += np.abs(dense)

    def join(self, other: "_Sums") -> None:
        self.total += other.total
        if self.magnitude is not None and other.magnitude is not None:
            self.magnitude += other.magnitude


@dataclass
class _Block:
    """The clients that are still awaited, in order, and the updates that wait for them."""

    awaited: list[int]
    arrived: dict[int, tuple[Update, float] | None] = field(default_factory=dict)
    sums: _Sums | None = None


class BlockSum:
    """Sums updates as they arrive.

    Args:
        cohort: client ids of the round.
        layout: of the vector that is summed.
        aggregation: `mean` of clients, weighted by `examples`, or `vote`: the majority sign of
            each entry times the mean magnitude.
    """

    def __init__(self, cohort: Sequence[int], layout: Layout, aggregation: Aggregation) -> None:
        ordered = sorted(cohort)
        starts = range(0, len(ordered), BLOCK_CLIENTS)
        self._blocks = [_Block(ordered[i : i + BLOCK_CLIENTS]) for i in starts]
        self._block_of = {c: block for block in self._blocks for c in block.awaited}
        self._next_block = 0
        self._layout = layout
        self._aggregation = aggregation
        self._sums = self._zero()
        self._weight = 0.0
        self.num_used = 0

    def _zero(self) -> _Sums:
        magnitude = self._layout.zeros() if self._aggregation == "vote" else None
        return _Sums(self._layout.zeros(), magnitude)

    def settle(self, client_id: int, update: Update | None, num_samples: int = 1) -> None:
        """Take a client's update, or None if there will be none; once for each client."""
        block = self._block_of[client_id]
        is_new = client_id in block.awaited and client_id not in block.arrived
        assert is_new, "a client is settled once"
        weight = float(num_samples) if self._aggregation == "examples" else 1.0
        block.arrived[client_id] = None if update is None else (update, weight)
        self._advance(block)
        while self._next_block < len(self._blocks) and not self._blocks[self._next_block].awaited:
            self._join(self._blocks[self._next_block])
            self._next_block += 1

    def _advance(self, block: _Block) -> None:
        """Add what has arrived, up to the first client that is still awaited."""
        with np.errstate(over="ignore", invalid="ignore"):  # whoever applies it checks it
            while block.awaited and block.awaited[0] in block.arrived:
                entry = block.arrived.pop(block.awaited.pop(0))
                if entry is None:
                    continue
                block.sums = block.sums or self._zero()
                block.sums.add(*entry)
                self._weight += entry[1]
                self.num_used += 1

    def _join(self, block: _Block) -> None:
        if block.sums is None:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            self._sums.join(block.sums)
        block.sums = None

    def result(self) -> Vector | None:
        """Return the aggregate, float32, shape (d,), or None if nobody counts.

        A cohort whose used clients have no samples at all has no weight under `examples`: its
        aggregate is zero, never a division by zero.
        """
        assert self._next_block == len(self._blocks), "every client is settled"
        if self.num_used == 0:
            return None
        total, magnitude = self._sums.total, self._sums.magnitude
        if magnitude is not None:
            magnitude /= np.float32(self.num_used)
            magnitude *= np.sign(total)
            return magnitude
        if self._weight == 0:
            return self._layout.zeros()
        total /= np.float32(self._weight)
        return total
