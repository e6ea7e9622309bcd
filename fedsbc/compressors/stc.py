"""Sparse ternary compression: the k largest magnitudes, each replaced by their signed mean."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np

from fedsbc.compressors.base import CompressorOptions, SparseOptions
from fedsbc.compressors.scopes import Group
from fedsbc.compressors.selecting import SelectingCompressor
from fedsbc.selection import mean
from fedsbc.updates import SparseSignBlock


class StcOptions(SparseOptions):
    """Options of `stc`.

    Attributes:
        name: `stc`.
    """

    name: Literal["stc"] = "stc"


class Stc(SelectingCompressor):
    """Send the positions and signs of the k largest magnitudes, and their mean magnitude.

    Source: Sattler et al., "Robust and Communication-Efficient Federated Learning from Non-IID
    Data" (arXiv 1903.02891), Algorithm 1. Deviations: exactly k entries where values tie (lowest
    index first), where the authors' program keeps all of them; zeros are never sent, and the mean
    is over the entries that are sent; k rounds up.
    """

    Options: ClassVar[type[CompressorOptions]] = StcOptions

    def __init__(self, options: StcOptions) -> None:
        self.options = options

    def blocks(self, group: Group, k: int) -> Iterator[SparseSignBlock]:
        """Yield one `SparseSignBlock` per tensor, see `SelectingCompressor`."""
        return ternary_blocks(group, k)


def ternary_blocks(group: Group, k: int) -> Iterator[SparseSignBlock]:
    """Yield the STC block of each tensor of a group.

    Raises:
        UpdateError: an entry is not finite.
    """
    chosen = group.top_magnitudes(k)
    value = mean(np.abs(chosen.values))
    negative = chosen.values < 0
    for tensor, positions, place in group.split(chosen.positions):
        shown = value if len(positions) else np.float32(0)
        yield SparseSignBlock(tensor.size, positions, negative[place], shown)
