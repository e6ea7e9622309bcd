"""Timing one compressor on one input, beside a copy of the same bytes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from fedsbc import payload
from fedsbc.arrays import Vector, aligned_vector
from fedsbc.compressors import Compressor, SparseOptions
from fedsbc.compressors.base import State
from fedsbc.feedback import compress_with_feedback
from fedsbc.layout import Layout
from sims.bench.rival import sbc_step


@dataclass(frozen=True)
class Measurement:
    """Medians over the repeats of one run, whose parts took turns.

    Attributes:
        scheme: name of the compressor.
        density: fraction of the entries that are sent; None for a scheme without one.
        input: name of the input.
        num_entries: length d of the change.
        num_kept: entries that the update carries.
        bits_per_entry: payload bits for each entry that the update carries.
        copy_ms: `np.copyto` of d float32 between warm arrays.
        step_ms: add the residual, compress, subtract, encode.
        decode_ms: decode the payload and add it to an accumulator.
        torch_ms: the step through `torch.topk`; None where there is no such twin.
    """

    scheme: str
    density: float | None
    input: str
    num_entries: int
    num_kept: int
    bits_per_entry: float
    copy_ms: float
    step_ms: float
    decode_ms: float
    torch_ms: float | None


class Bench:
    """The arrays of one input: they are warm, and every repeat starts from the same change.

    A quarter of the input is the residual, so that the sum has the shape of the input.
    """

    def __init__(self, compressor: Compressor, layout: Layout, vector: Vector) -> None:
        self.compressor = compressor
        self.layout = layout
        self.residual: Vector = vector * np.float32(0.25)
        self.delta: Vector = vector - self.residual
        self.work, self.spare = aligned_vector(layout.size), aligned_vector(layout.size)
        self.state: State = compressor.init_state(layout)
        self.data = b""

    def copy(self) -> None:
        """Copy the change, the yardstick."""
        np.copyto(self.spare, self.delta)

    def step(self) -> None:
        """Make the whole step; the change becomes the new residual in place."""
        compressor = self.compressor
        result = compress_with_feedback(
            compressor,
            self.work,
            self.residual if compressor.options.error_feedback else None,
            self.layout,
            self.state,
            np.random.default_rng(0),
            out=self.work,
        )
        self.data = payload.encode(result.update)

    def decode(self) -> None:
        """Decode the payload and accumulate it."""
        payload.decode(self.data, self.layout).add_to(self.spare)

    def torch_step(self) -> bytes:
        """Make the same step through `torch.topk`; return its payload."""
        options = self.compressor.options
        assert isinstance(options, SparseOptions)
        return sbc_step(self.work, self.residual, self.layout, options.density)

    def has_twin(self) -> bool:
        """Whether there is a step through `torch.topk` to compare with."""
        options = self.compressor.options
        return options.name == "sbc" and getattr(options, "scope", None) == "tensor"

    def measure(self, name: str, num_repeats: int) -> Measurement:
        """Time every part `num_repeats` times, in turn.

        Args:
            name: name of the input.
            num_repeats: how often; the first round, which warms up, is not counted.
        """
        parts: list[Callable[[], object]] = [self.copy, self.step, self.decode]
        parts += [self.torch_step] if self.has_twin() else []
        rounds = [[self._time_ms(part) for part in parts] for _ in range(num_repeats + 1)]
        copy_ms, step_ms, decode_ms, *rest = (
            median(times) for times in zip(*rounds[1:], strict=True)
        )
        options = self.compressor.options
        num_kept = payload.decode(self.data, self.layout).num_kept
        return Measurement(
            scheme=options.name,
            density=getattr(options, "density", None),
            input=name,
            num_entries=self.layout.size,
            num_kept=num_kept,
            bits_per_entry=8 * len(self.data) / max(num_kept, 1),
            copy_ms=copy_ms,
            step_ms=step_ms,
            decode_ms=decode_ms,
            torch_ms=rest[0] if rest else None,
        )

    def _time_ms(self, part: Callable[[], object]) -> float:
        np.copyto(self.work, self.delta)
        start = time.perf_counter()
        part()
        return 1000 * (time.perf_counter() - start)
