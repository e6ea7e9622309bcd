"""The same step through `torch.topk`, as most code of the field does it."""

import numpy as np
import torch

from fedsbc import payload
from fedsbc.arrays import Vector
from fedsbc.layout import Layout
from fedsbc.selection import num_to_keep
from fedsbc.updates import SparseMeanBlock, Update


def sbc_step(delta: Vector, residual: Vector, layout: Layout, density: float) -> bytes:
    """Make the whole SBC step, `delta` becoming the new residual; return the payload.

    Of equal values `torch.topk` keeps whichever it likes; otherwise the payload is ours.

    Args:
        delta: the change, float32, shape (d,); changed in place.
        residual: the old residual, float32, shape (d,).
        layout: the tensors of the vectors.
        density: fraction of the entries of each tensor that are sent.
    """
    total = torch.from_numpy(delta)
    total += torch.from_numpy(residual)
    blocks = []
    for tensor in layout.tensors:
        part = total[tensor.slice]
        k = num_to_keep(density, tensor.size)
        high, where_high = torch.topk(part, k)
        low, where_low = torch.topk(part, k, largest=False)
        positive = bool(high.mean() >= -low.mean())
        mean = (high if positive else low).double().mean().float()
        where = (where_high if positive else where_low).sort().values
        part[where] -= mean
        blocks.append(SparseMeanBlock(tensor.size, where.numpy(), np.float32(mean.item())))
    return payload.encode(Update(layout, blocks))
