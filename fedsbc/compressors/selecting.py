"""What all schemes share that choose entries group by group and keep no state."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import SparseOptions, State, check_form
from fedsbc.compressors.scopes import Group
from fedsbc.compressors.sums import sums
from fedsbc.layout import Layout
from fedsbc.selection import num_to_keep
from fedsbc.updates import Block, Update


class SelectingCompressor(ABC):
    """A scheme that makes the blocks of a group of tensors from their change alone.

    A subclass says how in `blocks`; it then runs on vectors, on a change and a residual that are
    added up on the way, and on tensors of a device.
    """

    options: SparseOptions

    @abstractmethod
    def blocks(self, group: Group, k: int) -> Iterator[Block]:
        """Yield one block for each tensor of the group.

        Args:
            group: what to select from.
            k: how many entries of the group the density asks for.

        Raises:
            UpdateError: an entry is not finite.
        """

    def init_state(self, layout: Layout) -> State:
        """Return no state."""
        return {}

    def compress(
        self, vector: Vector, layout: Layout, state: State, generator: np.random.Generator
    ) -> tuple[Update, State]:
        """Compress a float32 vector of shape (d,), see `Compressor`.

        Raises:
            UpdateError: the vector is not finite.
        """
        check_form(vector, layout)
        return self.compress_groups(layout, sums(layout, self.options.scope, vector)), state

    def compress_sum(
        self,
        delta: Vector,
        residual: Vector,
        out: Vector,
        layout: Layout,
        state: State,
        generator: np.random.Generator,
    ) -> tuple[Update, State]:
        """Compress delta + residual in one pass, see `SummingCompressor`.

        Raises:
            UpdateError: the sum is not finite.
        """
        parts = sums(layout, self.options.scope, delta, residual, out)
        return self.compress_groups(layout, parts), state

    def compress_groups(self, layout: Layout, groups: Iterable[Group]) -> Update:
        """Compress the groups of the scheme's scope, in order.

        Raises:
            UpdateError: an entry is not finite.
        """
        blocks: list[Block] = []
        for group in groups:
            blocks.extend(self.blocks(group, num_to_keep(self.options.density, group.size)))
        return Update(layout, blocks)
