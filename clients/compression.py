"""Compression of a client's change where it lies: on the GPU if the scheme can, else here."""

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors import Compressor, State
from fedsbc.compressors.base import corrects
from fedsbc.compressors.selecting import SelectingCompressor
from fedsbc.feedback import Compressed, compress_with_feedback
from fedsbc.flat_model import as_tensor, to_array
from fedsbc.layout import Layout
from fedsbc.selection_torch import compress_on_device
from fedsbc.training.trainer import Change


def compress(
    compressor: Compressor,
    change: Change,
    residual: Vector | None,
    layout: Layout,
    state: State,
    generator: np.random.Generator,
    *,
    in_place: bool = False,
) -> Compressed:
    """Compress change + residual, see `compress_with_feedback`; the bytes are the same.

    Args:
        compressor: the scheme.
        change: of the model, float32, shape (d,): an array, or a tensor on the model's device.
        residual: what the last call left out, float32, shape (d,); None counts as zero.
        layout: the tensors of the vectors.
        state: the compressor's state.
        generator: the compressor's only source of randomness.
        in_place: put the new residual where the change was, if that is an array.

    Raises:
        UpdateError: change + residual is not finite.
    """
    if isinstance(change, np.ndarray):
        return compress_with_feedback(
            compressor,
            change,
            residual,
            layout,
            state,
            generator,
            out=change if in_place else None,
        )
    if not isinstance(compressor, SelectingCompressor) or corrects(compressor):
        host = to_array(change)
        return compress_with_feedback(compressor, host, residual, layout, state, generator)
    there = None if residual is None else as_tensor(residual).to(change.device)
    update, left = compress_on_device(compressor, change, there, layout)
    return Compressed(update, None if left is None else to_array(left), state)
