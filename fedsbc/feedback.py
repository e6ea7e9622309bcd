"""Error feedback: what compression leaves out is kept and added to the next change."""

from dataclasses import dataclass

import numpy as np

from fedsbc.arrays import Vector, aligned_vector
from fedsbc.compressors.base import Compressor, State, check_form
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
) -> Compressed:
    """Compress delta + residual and keep what was left out.

    No argument is changed. The new residual is delta + residual - dense(update), every
    operation rounded to float32.

    Args:
        compressor: the scheme; its option `error_feedback` says whether there is a residual.
        delta: the change of the model, float32, shape (d,).
        residual: what the last call left out, float32, shape (d,); None counts as zero.
        layout: the tensors of the vectors.
        state: the compressor's state.
        generator: the compressor's only source of randomness.

    Raises:
        UpdateError: wrong dtype or length, or delta + residual is not finite. Nothing was changed.

    Source: Sattler et al. (arXiv 1805.08768), Algorithm 1, lines "ΔW ← R + ..." and "R ← ...".
    """
    if not compressor.options.error_feedback:
        assert residual is None, "a scheme without error feedback has no residual"
        update, state = compressor.compress(delta, layout, state, generator)
        return Compressed(update, None, state)
    check_form(delta, layout)
    if residual is not None:
        check_form(residual, layout)
    total = _sum(delta, residual)
    update, state = compressor.compress(total, layout, state, generator)
    update.add_to(total, -1.0)
    return Compressed(update, total, state)


def _sum(delta: Vector, residual: Vector | None) -> Vector:
    """Return delta + residual in new aligned memory; an overflow is left to the compressor."""
    total = aligned_vector(len(delta))
    if residual is None:
        np.copyto(total, delta)
        return total
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add(delta, residual, out=total)
