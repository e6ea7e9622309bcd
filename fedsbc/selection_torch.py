"""Selection on a torch device: the change stays there, the selected entries alone come back.

The same positions and values are selected as in main memory, and means are taken from the values
in main memory, so that a payload does not depend on where the change lay.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from fedsbc.arrays import Vector
from fedsbc.compressors.scopes import Group, Tensors, not_finite, scope_parts
from fedsbc.compressors.selecting import SelectingCompressor
from fedsbc.errors import UpdateError
from fedsbc.layout import Layout
from fedsbc.selection import Selected
from fedsbc.updates import (
    Block,
    SparseFloatBlock,
    SparseMeanBlock,
    SparseSignBlock,
    SparseTwoMeanBlock,
    Update,
)


@dataclass(frozen=True)
class DeviceGroup(Group):
    """A group whose change lies on a device.

    Attributes:
        tensors: at least one, in the layout's order.
        total: float32, shape (n,), on any device.
    """

    tensors: Tensors
    total: Tensor

    @property
    def size(self) -> int:
        """Number of entries, n."""
        return len(self.total)

    def vector(self) -> Vector:
        """Bring the whole change to main memory, see `Group`."""
        self._check_finite()
        vector: Vector = self.total.cpu().numpy()
        return vector

    def top_sides(self, k: int) -> tuple[Selected, Selected]:
        """Select on each side of zero, see `Group`."""
        self._check_finite()
        return self._take(self.total, k), self._take(-self.total, k)

    def top_magnitudes(self, k: int) -> Selected:
        """Select by magnitude, see `Group`."""
        self._check_finite()
        return self._take(self.total.abs(), k)

    def _take(self, keys: Tensor, k: int) -> Selected:
        positions = largest(keys, k)
        return Selected(positions.cpu().numpy(), self.total[positions].cpu().numpy())

    def _check_finite(self) -> None:
        finite = self.total.isfinite()
        if not finite.all():
            entry = int(finite.int().argmin())
            raise not_finite(self.tensors, entry, float(self.total[entry]))


def largest(keys: Tensor, k: int) -> Tensor:
    """Return the sorted positions, int64, of the k largest keys above zero, lowest index first.

    Args:
        keys: float32, shape (n,), finite, on any device.
        k: how many, 0 or more; all that are above zero where fewer are.
    """
    if k == 0:
        return keys.new_empty(0, dtype=torch.int64)
    threshold = keys.topk(k, sorted=False).values.min() if k < len(keys) else keys.new_zeros(())
    if threshold <= 0:
        return (keys > 0).nonzero().flatten()
    above, ties = keys > threshold, keys == threshold
    ties &= ties.cumsum(0) <= k - above.sum()  # of equal keys topk would take any
    return (above | ties).nonzero().flatten()


def compress_on_device(
    compressor: SelectingCompressor, delta: Tensor, residual: Tensor | None, layout: Layout
) -> tuple[Update, Tensor | None]:
    """Compress delta + residual on their device and keep what was left out there.

    The update and the new residual equal those of `fedsbc.feedback.compress_with_feedback`.

    Args:
        compressor: a scheme that selects group by group, such as `sbc` and `topk`.
        delta: the change of the model, float32, shape (d,).
        residual: what the last call left out, on the same device; None counts as zero.
        layout: the tensors of the vectors.

    Returns:
        The update, in main memory, and the new residual, on the device; None without error
        feedback.

    Raises:
        UpdateError: wrong dtype or length, or delta + residual is not finite. Nothing was changed.
    """
    for given in (delta,) if residual is None else (delta, residual):
        if given.dtype != torch.float32 or given.shape != (layout.size,):
            raise UpdateError(
                f"a change is a float32 tensor of shape ({layout.size},), got {given.dtype} of "
                f"shape {tuple(given.shape)}"
            )
    total = delta.detach().clone() if residual is None else delta.detach() + residual
    update = compressor.compress_groups(layout, _groups(compressor, total, layout))
    if not compressor.options.error_feedback:
        assert residual is None, "a scheme without error feedback has no residual"
        return update, None
    for tensor, block in zip(layout.tensors, update.blocks, strict=True):
        _subtract(total[tensor.slice], block)
    return update, total


def _groups(
    compressor: SelectingCompressor, total: Tensor, layout: Layout
) -> Iterator[DeviceGroup]:
    for tensors, place in scope_parts(layout, compressor.options.scope):
        yield DeviceGroup(tensors, total[place])


def _subtract(part: Tensor, block: Block) -> None:
    """Subtract a block from its tensor, in place; of a sparse block its entries alone travel."""
    if isinstance(block, SparseFloatBlock | SparseMeanBlock | SparseSignBlock | SparseTwoMeanBlock):
        entries = np.zeros(block.num_kept, np.float32)
        replace(block, size=len(entries), positions=np.arange(len(entries))).add_to(entries, -1.0)
        part[torch.from_numpy(block.positions).to(part.device)] += torch.from_numpy(entries).to(
            part.device
        )
    else:
        dense = np.zeros(block.size, np.float32)
        block.add_to(dense, -1.0)
        part += torch.from_numpy(dense).to(part.device)
