"""Rand-k: k entries drawn at random, each as float32; their positions travel as a seed."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import model_validator

from fedsbc.arrays import Vector
from fedsbc.coding.sampling import sample_positions
from fedsbc.compressors.base import CompressorOptions, SparseOptions, State
from fedsbc.compressors.scopes import check_vector
from fedsbc.layout import Layout
from fedsbc.selection import num_to_keep
from fedsbc.updates import SeededBlock, Update


class RandomKOptions(SparseOptions):
    """Options of `randomk`.

    Attributes:
        name: `randomk`.
        scope: `tensor`: k are drawn in each tensor.
        unbiased: send entries times n / k, so that the expected update is the change; without
            error feedback alone, for the residual would grow.
    """

    name: Literal["randomk"] = "randomk"
    scope: Literal["tensor"] = "tensor"
    unbiased: bool = False

    @model_validator(mode="after")
    def _check(self) -> "RandomKOptions":
        if self.unbiased and self.error_feedback:
            raise ValueError("unbiased needs error_feedback: false, or the residual grows")
        return self


class RandomK:
    """Send k entries of each tensor, drawn without replacement by both sides from one seed.

    Source: Stich et al., "Sparsified SGD with Memory" (arXiv 1809.07599), Definition 2.1; Konečný
    et al., "Federated Learning: Strategies for Improving Communication Efficiency" (arXiv
    1610.05492), section 2 (random mask), for the seed on the wire. Deviation: k per tensor.
    An entry that is drawn is sent even if it is zero: the other side draws it too. What n / k
    would carry beyond float32 is sent as its largest number.
    """

    Options: ClassVar[type[CompressorOptions]] = RandomKOptions

    def __init__(self, options: RandomKOptions) -> None:
        self.options = options

    def init_state(self, layout: Layout) -> State:
        """Return no state."""
        return {}

    def compress(
        self, vector: Vector, layout: Layout, state: State, generator: np.random.Generator
    ) -> tuple[Update, State]:
        """Draw from a float32 vector of shape (d,); one `SeededBlock` per tensor.

        Raises:
            UpdateError: the vector is not finite.
        """
        check_vector(vector, layout)
        seed = int(generator.integers(2**64, dtype=np.uint64))
        parts = layout.split(vector)
        return Update(layout, [self._block(p, seed, i) for i, p in enumerate(parts)]), state

    def _block(self, part: Vector, seed: int, index: int) -> SeededBlock:
        k = num_to_keep(self.options.density, len(part))
        values = part[sample_positions(seed, index, len(part), k)]
        if self.options.unbiased and k:
            limit = np.finfo(np.float32).max
            values = np.clip(values.astype(np.float64) * len(part) / k, -limit, limit)
        return SeededBlock(len(part), seed, index, values.astype(np.float32))
