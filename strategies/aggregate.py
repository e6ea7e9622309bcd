"""The sum of a cohort's updates: one definition, whatever the order of arrival.

The cohort, sorted by client id, is cut into blocks of 16. Within a block updates are added in
that order to a zero vector; the blocks' sums are added in order. Float32 throughout, so that the
sum is the same bytes on every engine. Whoever is missing is skipped.
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
class _Block:
    """Clients still awaited, and what arrived and cannot be added yet."""

    clients: Sequence[int]
    arrived: dict[int, tuple[Update, float] | None] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return len(self.arrived) == len(self.clients)


class BlockSum:
    """Sums updates as they arrive: a block is added, and freed, when its last client is settled.

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
        self._block_of = {c: block for block in self._blocks for c in block.clients}
        self._next_block = 0
        self._layout = layout
        self._aggregation = aggregation
        self._total = layout.zeros()
        self._magnitude = layout.zeros() if aggregation == "vote" else None
        self._weight = 0.0
        self.num_used = 0

    def settle(self, client_id: int, update: Update | None, num_samples: int = 1) -> None:
        """Take a client's update, or None if there will be none; once for each client."""
        block = self._block_of[client_id]
        assert client_id not in block.arrived, "a client is settled once"
        weight = float(num_samples) if self._aggregation == "examples" else 1.0
        block.arrived[client_id] = None if update is None else (update, weight)
        while self._next_block < len(self._blocks) and self._blocks[self._next_block].is_complete:
            self._add_block(self._blocks[self._next_block])
            self._next_block += 1

    def _add_block(self, block: _Block) -> None:
        total = self._layout.zeros()
        for client_id in block.clients:
            entry = block.arrived[client_id]
            if entry is None:
                continue
            update, weight = entry
            self._add(total, update, weight)
            self._weight += weight
            self.num_used += 1
            block.arrived[client_id] = None  # frees the update
        self._total += total

    def _add(self, total: Vector, update: Update, weight: float) -> None:
        if self._magnitude is None:
            update.add_to(total, weight)
            return
        dense = update.to_dense()
        total += np.sign(dense)
        self._magnitude += np.abs(dense)

    def result(self) -> Vector | None:
        """Return the aggregate, float32, shape (d,), or None if nobody counts.

        A cohort whose used clients have no samples at all has no weight under `examples`: its
        aggregate is zero, never a division by zero.
        """
        assert self._next_block == len(self._blocks), "every client is settled"
        if self.num_used == 0:
            return None
        if self._magnitude is not None:
            return np.sign(self._total) * (self._magnitude / np.float32(self.num_used))
        if self._weight == 0:
            return self._layout.zeros()
        self._total /= np.float32(self._weight)
        return self._total
