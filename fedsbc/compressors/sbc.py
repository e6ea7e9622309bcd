"""Sparse binary compression: the k largest entries of one sign, all replaced by their mean."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np

from fedsbc.compressors.base import CompressorOptions, SparseOptions
from fedsbc.compressors.scopes import Group
from fedsbc.compressors.selecting import SelectingCompressor
from fedsbc.selection import mean
from fedsbc.updates import Positions, SparseMeanBlock


class SbcOptions(SparseOptions):
    """Options of `sbc`.

    Attributes:
        name: `sbc`.
    """

    name: Literal["sbc"] = "sbc"


class Sbc(SelectingCompressor):
    """Send the positions of the k largest or of the k lowest entries, and one signed mean.

    With `scope: model` all blocks that send anything have the same mean.

    Source: Sattler et al., "Sparse Binary Compression: Towards Distributed Deep Learning with
    minimal Communication" (arXiv 1805.08768), Algorithm 2. Deviations: exactly k entries where
    values tie (lowest index first), where the algorithm's comparison would send all of them;
    zeros and entries of the other sign are never sent, so that a side with fewer than k entries
    averages those it has; `scope: model` is offered beside the paper's selection per tensor.
    """

    Options: ClassVar[type[CompressorOptions]] = SbcOptions

    def __init__(self, options: SbcOptions) -> None:
        self.options = options

    def blocks(self, group: Group, k: int) -> Iterator[SparseMeanBlock]:
        """Yield one `SparseMeanBlock` per tensor, see `SelectingCompressor`."""
        chosen, value = binarize(group, k)
        for tensor, positions, _ in group.split(chosen):
            shown = value if len(positions) else np.float32(0)
            yield SparseMeanBlock(tensor.size, positions, shown)


def binarize(group: Group, k: int) -> tuple[Positions, np.float32]:
    """Choose the side of a group whose k largest have the larger mean.

    Returns:
        The positions of that side and its signed mean; the positive side wins a tie.

    Raises:
        UpdateError: an entry is not finite.

    Source: Algorithm 2 of the SBC paper, see `Sbc` for the deviations.
    """
    plus, minus = group.top_sides(k)
    mean_plus, mean_minus = mean(plus.values), mean(minus.values)
    if mean_plus >= -mean_minus:
        return plus.positions, mean_plus
    return minus.positions, mean_minus
