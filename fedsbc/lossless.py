"""The shortest lossless update of a vector: what the server sends where nothing is compressed."""

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.bits import rice_bits_per_position
from fedsbc.layout import Layout
from fedsbc.updates import Block, DenseBlock, SparseFloatBlock, Update


def lossless_update(vector: Vector, layout: Layout) -> Update:
    """Return a vector of shape (d,) as an update that loses nothing.

    A tensor with few enough non-zeros is sent sparse: the sum of a few sparse updates is sparse
    itself. A negative zero counts as zero; whoever applies the update does not see the difference,
    because both sides apply the decoded one.
    """
    return Update(layout, [_block(view) for view in layout.split(vector)])


def _block(values: Vector) -> Block:
    positions = np.flatnonzero(values)
    density = len(positions) / max(1, len(values))
    if len(positions) and density < 1:
        is_shorter = density * (32 + rice_bits_per_position(density)) < 32
    else:
        is_shorter = len(positions) == 0
    if not is_shorter:
        return DenseBlock(values.copy())
    return SparseFloatBlock(len(values), positions, values[positions])
