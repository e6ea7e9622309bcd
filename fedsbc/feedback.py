"""Error feedback: what compression leaves out is kept and added to the next change."""

from dataclasses import dataclass

import numpy as np

from fedsbc.arrays import Vector, aligned_vector
from fedsbc.compressors.base import (
    Compressor,
    State,
    check_form,
    corrects,
    sums_up,
)
from fedsbc.layout import Layout
from fedsbc.updates import Update


@dataclass(frozen=True)
class Compressed:
    """What one compression gives.

    Attributes:
        update: what is sent.
        residual: what was left out, float32, shape (d,); None without error feedback.
        state: the compressor's state for its next call.
    """

    update: Update
    residual: Vector | None
    state: State


def compress_with_feedback(
    compressor: Compressor,
    delta: Vector,
    residual: Vector | None,
    layout: Layout,
    state: State,
    generator: np.random.Generator,
    *,
    out: Vector | None = None,
) -> Compressed:
    """Compress delta + residual and keep what was left out.

    The new residual is delta + residual - dense(update), every operation rounded to float32;
    a `CorrectingCompressor` puts its own vector in the place of delta.
    No argument is changed but `out`.

    Args:
        compressor: the scheme; its option `error_feedback` says whether there is a residual.
        delta: the change of the model, float32, shape (d,).
        residual: what the last call left out, float32, shape (d,); None counts as zero.
        layout: the tensors of the vectors.
        state: the compressor's state.
        generator: the compressor's only source of randomness.
        out: where the new residual goes, float32, shape (d,); fresh memory if None. It may be
            `delta` itself, which is fastest: half of the step's time is the traffic of memory.

    Raises:
        UpdateError: wrong dtype or length, or delta + residual is not finite. Nothing was
            changed but `out`, whose content is then undefined.

    Source: Sattler et al. (arXiv 1805.08768), Algorithm 1, lines "ΔW ← R + ..." and "R ← ...".
    """
    if corrects(compressor):
        delta, state = compressor.correct(delta, layout, state)
    if not compressor.options.error_feedback:
        assert residual is None, "a scheme without error feedback has no residual"
        update, state = compressor.compress(delta, layout, state, generator)
        return Compressed(update, None, state)
    check_form(delta, layout)
    total = aligned_vector(layout.size) if out is None else out
    if residual is None:
        if total is not delta:
            np.copyto(total, delta)
        update, state = compressor.compress(total, layout, state, generator)
    else:
        check_form(residual, layout)
        assert not np.shares_memory(total, residual), "the old residual must survive a refusal"
        update, state = _compress_sum(compressor, delta, residual, total, layout, state, generator)
    update.add_to(total, -1.0)
    return Compressed(update, total, state)


def _compress_sum(
    compressor: Compressor,
    delta: Vector,
    residual: Vector,
    total: Vector,
    layout: Layout,
    state: State,
    generator: np.random.Generator,
) -> tuple[Update, State]:
    """Compress delta + residual and leave the sum in `total`; what overflows is refused."""
    with np.errstate(over="ignore", invalid="ignore"):
        if sums_up(compressor):
            return compressor.compress_sum(delta, residual, total, layout, state, generator)
        np.add(delta, residual, out=total)
    return compressor.compress(total, layout, state, generator)
