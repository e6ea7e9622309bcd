"""Sparse binary compression: the k largest entries of one sign, all replaced by their mean."""

from collections.abc import Iterable
from typing import ClassVar, Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions, SparseOptions, State, check_form
from fedsbc.compressors.scan import top_sides
from fedsbc.compressors.scopes import Group, groups
from fedsbc.layout import Layout
from fedsbc.selection import mean, num_to_keep
from fedsbc.updates import Positions, SparseMeanBlock, Update


class SbcOptions(SparseOptions):
    """Options of `sbc`.

    Attributes:
        name: `sbc`.
    """

    name: Literal["sbc"] = "sbc"


class Sbc:
    """Send the positions of the k largest or of the k lowest entries, and one signed mean.

    Source: Sattler et al., "Sparse Binary Compression: Towards Distributed Deep Learning with
    minimal Communication" (arXiv 1805.08768), Algorithm 2. Deviations: exactly k entries where
    values tie (lowest index first), where the algorithm's comparison would send all of them;
    zeros and entries of the other sign are never sent, so that a side with fewer than k entries
    averages those it has; `scope: model` is offered beside the paper's selection per tensor.
    """

    Options: ClassVar[type[CompressorOptions]] = SbcOptions

    def __init__(self, options: SbcOptions) -> None:
        self.options = options

    def init_state(self, layout: Layout) -> State:
        """Return no state."""
        return {}

    def compress(
        self, vector: Vector, layout: Layout, state: State, generator: np.random.Generator
    ) -> tuple[Update, State]:
        """Binarise a float32 vector of shape (d,); one `SparseMeanBlock` per tensor.

        With `scope: model` all blocks that send anything have the same mean.

        Raises:
            UpdateError: the vector is not finite.
        """
        check_form(vector, layout)
        return Update(layout, self._blocks(groups(layout, self.options.scope, vector))), state

    def compress_sum(
        self,
        delta: Vector,
        residual: Vector,
        out: Vector,
        layout: Layout,
        state: State,
        generator: np.random.Generator,
    ) -> tuple[Update, State]:
        """Binarise delta + residual, see `SummingCompressor`.

        Raises:
            UpdateError: the sum is not finite.
        """
        parts = groups(layout, self.options.scope, delta, residual, out)
        return Update(layout, self._blocks(parts)), state

    def _blocks(self, parts: Iterable[Group]) -> list[SparseMeanBlock]:
        blocks = []
        for group in parts:
            chosen, value = binarize(group, num_to_keep(self.options.density, group.size))
            for tensor, positions, _ in group.split(chosen):
                shown = value if len(positions) else np.float32(0)
                blocks.append(SparseMeanBlock(tensor.size, positions, shown))
        return blocks


def binarize(group: Group, k: int) -> tuple[Positions, np.float32]:
    """Choose the side of a group whose k largest have the larger mean.

    Returns:
        The positions of that side and its signed mean; the positive side wins a tie.

    Raises:
        UpdateError: an entry is not finite.

    Source: Algorithm 2 of the SBC paper, see `Sbc` for the deviations.
    """
    plus, minus = top_sides(group, k)
    mean_plus, mean_minus = mean(plus.values), mean(minus.values)
    if mean_plus >= -mean_minus:
        return plus.positions, mean_plus
    return minus.positions, mean_minus
