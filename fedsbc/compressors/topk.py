"""Top-k: the k entries that are farthest from zero, each as float32."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from fedsbc.compressors.base import CompressorOptions, SparseOptions
from fedsbc.compressors.scopes import Group
from fedsbc.compressors.selecting import SelectingCompressor
from fedsbc.updates import SparseFloatBlock


class TopKOptions(SparseOptions):
    """Options of `topk`.

    Attributes:
        name: `topk`.
    """

    name: Literal["topk"] = "topk"


class TopK(SelectingCompressor):
    """Send the k largest magnitudes with their values.

    Source: Shi et al., "Understanding Top-k Sparsification in Distributed Deep Learning"
    (arXiv 1911.08772), Top_k operator. Deviations: ties go to the lowest index, zeros are never
    sent, `scope: tensor` is offered beside the paper's whole model.
    """

    Options: ClassVar[type[CompressorOptions]] = TopKOptions

    def __init__(self, options: TopKOptions) -> None:
        self.options = options

    def blocks(self, group: Group, k: int) -> Iterator[SparseFloatBlock]:
        """Yield one `SparseFloatBlock` per tensor, see `SelectingCompressor`."""
        chosen = group.top_magnitudes(k)
        for tensor, positions, place in group.split(chosen.positions):
            yield SparseFloatBlock(tensor.size, positions, chosen.values[place])
