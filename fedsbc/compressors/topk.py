"""Top-k: the k entries that are farthest from zero, each as float32."""

from collections.abc import Iterable
from typing import ClassVar, Literal

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions, SparseOptions, State, check_form
from fedsbc.compressors.scan import top_magnitudes
from fedsbc.compressors.scopes import Group, groups
from fedsbc.layout import Layout
from fedsbc.selection import num_to_keep
from fedsbc.updates import SparseFloatBlock, Update


class TopKOptions(SparseOptions):
    """Options of `topk`.

    Attributes:
        name: `topk`.
    """

    name: Literal["topk"] = "topk"


class TopK:
    """Send the k largest magnitudes with their values.

    Source: Shi et al., "Understanding Top-k Sparsification in Distributed Deep Learning"
    (arXiv 1911.08772), Top_k operator. Deviations: ties go to the lowest index, zeros are never
    sent, `scope: tensor` is offered beside the paper's whole model.
    """

    Options: ClassVar[type[CompressorOptions]] = TopKOptions

    def __init__(self, options: TopKOptions) -> None:
        self.options = options

    def init_state(self, layout: Layout) -> State:
        """Return no state."""
        return {}

    def compress(
        self, vector: Vector, layout: Layout, state: State, generator: np.random.Generator
    ) -> tuple[Update, State]:
        """Select in a float32 vector of shape (d,); one `SparseFloatBlock` per tensor.

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
        """Select in delta + residual, see `SummingCompressor`.

        Raises:
            UpdateError: the sum is not finite.
        """
        parts = groups(layout, self.options.scope, delta, residual, out)
        return Update(layout, self._blocks(parts)), state

    def _blocks(self, parts: Iterable[Group]) -> list[SparseFloatBlock]:
        blocks = []
        for group in parts:
            chosen = top_magnitudes(group, num_to_keep(self.options.density, group.size))
            for tensor, positions, where in group.split(chosen.positions):
                blocks.append(SparseFloatBlock(tensor.size, positions, chosen.values[where]))
        return blocks
