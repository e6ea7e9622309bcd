"""Sparse binary compression: the k largest entries of one sign, all replaced by their mean."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np

from fedsbc.compressors.base import CompressorOptions, SparseOptions
from fedsbc.compressors.scopes import Group
from fedsbc.compressors.selecting import SelectingCompressor
from fedsbc.compressors.stc import ternary_blocks
from fedsbc.selection import Selected, mean
from fedsbc.updates import Block, SparseFloatBlock, SparseMeanBlock, SparseTwoMeanBlock


class SbcOptions(SparseOptions):
    """Options of `sbc`.

    Attributes:
        name: `sbc`.
        values: what is sent for the entries. `mean`: SBC. The others take binarisation apart:
            `float32`: the same entries with their own values; `signs`: the k largest magnitudes
            with their signs and one mean, which is STC; `two-means`: those entries with their
            signs and a mean for each sign.
    """

    name: Literal["sbc"] = "sbc"
    values: Literal["mean", "float32", "signs", "two-means"] = "mean"


class Sbc(SelectingCompressor):
    """Send the positions of the k largest or of the k lowest entries, and one signed mean.

    With `scope: model` all blocks that send anything have the same mean.

    Source: Sattler et al., "Sparse Binary Compression: Towards Distributed Deep Learning with
    minimal Communication" (arXiv 1805.08768), Algorithm 2. Deviations: exactly k entries where
    values tie (lowest index first), where the algorithm's comparison would send all of them;
    zeros and entries of the other sign are never sent, so that a side with fewer than k entries
    averages those it has; `scope: model` is offered beside the paper's selection per tensor, and
    `values` other than `mean` as ablations.
    """

    Options: ClassVar[type[CompressorOptions]] = SbcOptions

    def __init__(self, options: SbcOptions) -> None:
        self.options: SbcOptions = options

    def blocks(self, group: Group, k: int) -> Iterator[Block]:
        """Yield the block of each tensor, see `SelectingCompressor`."""
        if self.options.values == "signs":
            return ternary_blocks(group, k)
        if self.options.values == "two-means":
            return _two_mean_blocks(group, k)
        chosen, value = binarize(group, k)
        if self.options.values == "float32":
            return _float_blocks(group, chosen)
        return _mean_blocks(group, chosen, value)


def binarize(group: Group, k: int) -> tuple[Selected, np.float32]:
    """Choose the side of a group whose k largest have the larger mean.

    Returns:
        The entries of that side and their signed mean; the positive side wins a tie.

    Raises:
        UpdateError: an entry is not finite.

    Source: Algorithm 2 of the SBC paper, see `Sbc` for the deviations.
    """
    plus, minus = group.top_sides(k)
    mean_plus, mean_minus = mean(plus.values), mean(minus.values)
    return (plus, mean_plus) if mean_plus >= -mean_minus else (minus, mean_minus)


def _mean_blocks(group: Group, chosen: Selected, value: np.float32) -> Iterator[SparseMeanBlock]:
    for tensor, positions, _ in group.split(chosen.positions):
        yield SparseMeanBlock(tensor.size, positions, value if len(positions) else np.float32(0))


def _float_blocks(group: Group, chosen: Selected) -> Iterator[SparseFloatBlock]:
    for tensor, positions, place in group.split(chosen.positions):
        yield SparseFloatBlock(tensor.size, positions, chosen.values[place])


def _two_mean_blocks(group: Group, k: int) -> Iterator[SparseTwoMeanBlock]:
    chosen = group.top_magnitudes(k)
    negative = chosen.values < 0
    high, low = mean(chosen.values[~negative]), mean(chosen.values[negative])
    for tensor, positions, place in group.split(chosen.positions):
        signs = negative[place]
        yield SparseTwoMeanBlock(
            tensor.size,
            positions,
            signs,
            positive_mean=np.float32(0) if signs.all() else high,
            negative_mean=low if signs.any() else np.float32(0),
        )
