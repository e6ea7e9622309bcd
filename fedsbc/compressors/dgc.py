"""Deep gradient compression: Top-k by a sampled threshold, with momentum kept in the scheme."""

import math
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedsbc.arrays import Vector
from fedsbc.compressors.base import CompressorOptions, SparseOptions, State
from fedsbc.compressors.gradient_dropping import sampled_threshold
from fedsbc.compressors.scopes import check_vector
from fedsbc.layout import Layout
from fedsbc.options import Density, Fraction, PositiveFloat, PositiveInt
from fedsbc.selection import largest_of, num_to_keep
from fedsbc.updates import Block, DenseBlock, Positions, SparseFloatBlock, Update

ENOUGH = 0.8
"""A threshold that fewer than this times k entries exceed is lowered by the same factor."""

MAX_ADAPTATIONS = 10


class DgcOptions(SparseOptions):
    """Options of `dgc`. The clients' optimiser should have no momentum of its own.

    Attributes:
        name: `dgc`.
        scope: `tensor`, as in the source.
        error_feedback: always true: local accumulation is part of the scheme.
        momentum: m of the momentum correction; 0 turns it off.
        nesterov: use Nesterov's momentum.
        masking: forget the momentum of the entries that were sent.
        clip_norm: bound of the L2 norm of the sum over all clients; a client's change is clipped
            to clip_norm / sqrt(clip_clients). None: not clipped.
        clip_clients: number of clients N of the bound.
        warmup: densities of the first rounds, such as [0.25, 0.0625, 0.015625, 0.004].
        sample: fraction of a tensor from which the threshold is estimated.
        dense_vectors: send tensors of less than two dimensions dense.
    """

    name: Literal["dgc"] = "dgc"
    scope: Literal["tensor"] = "tensor"
    error_feedback: Literal[True] = True
    momentum: Fraction = 0.9
    nesterov: bool = False
    masking: bool = True
    clip_norm: PositiveFloat | None = None
    clip_clients: PositiveInt = 1
    warmup: list[Density] = Field(default_factory=list)
    sample: Density = 0.01
    dense_vectors: bool = True


class Dgc:
    """Send about the k largest magnitudes of the accumulated, momentum-corrected change.

    With u the momentum and v the residual: u <- m u + g, v <- v + u, send the top of v, and set
    v and u to zero there. The residual v is kept by `fedsbc.feedback`, u is the scheme's state.

    Source: Lin et al., "Deep Gradient Compression: Reducing the Communication Bandwidth for
    Distributed Training" (arXiv 1712.01887), sections 3.1 to 3.3 and appendix; sampling bounds
    0.8 and 1.3 and dense vectors as in the authors' program. Deviations: g is the change of the
    weights over the local steps; warm-up goes by rounds; of more than k candidates the largest k
    are sent, not the first; the sample starts at the first entry and takes the rank that belongs
    to its size.
    """

    Options: ClassVar[type[CompressorOptions]] = DgcOptions

    def __init__(self, options: DgcOptions) -> None:
        self.options = options

    def init_state(self, layout: Layout) -> State:
        """Return the momentum, float32, shape (d,), and the rounds made, int64, shape (1,)."""
        return {"momentum": layout.zeros(), "num_rounds": np.zeros(1, np.int64)}

    def correct(self, delta: Vector, layout: Layout, state: State) -> tuple[Vector, State]:
        """Clip the change and put it into the momentum, see `CorrectingCompressor`.

        Raises:
            UpdateError: the change is not finite.
        """
        check_vector(delta, layout)
        factor = np.float32(self.options.momentum)
        momentum: Vector = factor * state["momentum"]
        clipped = self._clip(delta)
        momentum += clipped
        if self.options.nesterov:
            return factor * momentum + clipped, {**state, "momentum": momentum}
        return momentum, {**state, "momentum": momentum}

    def compress(
        self, vector: Vector, layout: Layout, state: State, generator: np.random.Generator
    ) -> tuple[Update, State]:
        """Select in the accumulated change, float32, shape (d,); mask the momentum.

        Raises:
            UpdateError: the vector is not finite.
        """
        check_vector(vector, layout)
        num_rounds = int(state["num_rounds"][0])
        warmup = self.options.warmup
        density = warmup[num_rounds] if num_rounds < len(warmup) else self.options.density
        momentum = state["momentum"].copy()
        blocks: list[Block] = []
        for tensor, part in zip(layout.tensors, layout.split(vector), strict=True):
            if self.options.dense_vectors and len(tensor.shape) < 2:
                blocks.append(DenseBlock(part.copy()))
                continue
            chosen = self._choose(np.abs(part), density)
            blocks.append(SparseFloatBlock(tensor.size, chosen, part[chosen]))
            if self.options.masking:
                momentum[tensor.slice][chosen] = 0
        return Update(layout, blocks), {"momentum": momentum, "num_rounds": state["num_rounds"] + 1}

    def _clip(self, delta: Vector) -> Vector:
        if self.options.clip_norm is None:
            return delta
        bound = self.options.clip_norm / math.sqrt(self.options.clip_clients)
        norm = math.sqrt(float(np.sum(np.square(delta, dtype=np.float64))))
        return delta * np.float32(bound / norm) if norm > bound else delta

    def _choose(self, magnitudes: Vector, density: float) -> Positions:
        """Return at most k entries beyond a sampled threshold that is adapted a few times."""
        k = num_to_keep(density, len(magnitudes))
        if k == 0:
            return np.arange(0)
        threshold = sampled_threshold(magnitudes, density, self.options.sample)
        for _ in range(MAX_ADAPTATIONS):
            if np.count_nonzero(magnitudes >= threshold) >= ENOUGH * k:
                break
            threshold = threshold * np.float32(ENOUGH)
        return largest_of(magnitudes, magnitudes >= threshold, k)
