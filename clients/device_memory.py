"""A process's part of a GPU's memory: samples that are kept there, and what is given back."""

from collections import OrderedDict

import numpy as np
import torch
from numpy.typing import NDArray

from fedsbc.training.batches import Rows, Samples, as_samples

SAMPLES_SHARE = 0.2
"""Of a process's part of the GPU, for samples; `sims.resources` leaves 0.75 to training."""

UNUSED_SHARE = 0.25
"""Of that part, which torch may hold without using it."""

Part = tuple[Samples, Samples, Rows]
"""Samples, labels, and which rows of them are meant."""


class DeviceMemory:
    """Keeps partitions on the device while they fit; on a CPU, does nothing.

    Args:
        device: where models are trained.
        limit_bytes: for samples; None: a share of this process's part of the GPU.
        gpu_share: that part, in (0, 1]; torch refuses what goes beyond it.
    """

    def __init__(
        self, device: torch.device, *, limit_bytes: int | None = None, gpu_share: float = 1.0
    ) -> None:
        self.device = device
        self._kept: OrderedDict[int, tuple[torch.Tensor, torch.Tensor]] = OrderedDict()
        self._used_bytes, self._most_unused = 0, 0
        self._limit_bytes = limit_bytes or 0
        if device.type == "cuda":
            part = gpu_share * torch.cuda.get_device_properties(device).total_memory
            self._most_unused = int(UNUSED_SHARE * part)
            self._limit_bytes = int(SAMPLES_SHARE * part) if limit_bytes is None else limit_bytes
            if gpu_share < 1:
                torch.cuda.set_per_process_memory_fraction(gpu_share, device)

    def part(
        self, client_id: int, rows: NDArray[np.int64], images: Samples, labels: Samples
    ) -> Part:
        """Return a client's samples: on the device if they fit, else as they are.

        Args:
            client_id: of the client.
            rows: its rows in `images` and `labels`.
            images: all samples, shape (N, ...).
            labels: all labels, shape (N,).
        """
        if not self._limit_bytes or not len(rows):
            return images, labels, rows
        if client_id not in self._kept and not self._keep(client_id, rows, images, labels):
            return images, labels, rows
        self._kept.move_to_end(client_id)
        x, y = self._kept[client_id]
        return x, y, np.arange(len(y))

    def _keep(
        self, client_id: int, rows: NDArray[np.int64], images: Samples, labels: Samples
    ) -> bool:
        """Copy a client's samples to the device in place of those used least lately."""
        x, y = as_samples(images), as_samples(labels)
        size = len(rows) * (x[0].numel() * x.element_size() + y.element_size())
        if size > self._limit_bytes:
            return False
        while self._used_bytes + size > self._limit_bytes:
            _, (old_x, old_y) = self._kept.popitem(last=False)
            self._used_bytes -= _bytes(old_x) + _bytes(old_y)
        chosen = torch.from_numpy(rows)
        self._kept[client_id] = (
            x.index_select(0, chosen).to(self.device),
            y.index_select(0, chosen).to(self.device),
        )
        self._used_bytes += size
        return True

    def give_back(self) -> None:
        """After a client: return memory that torch holds but does not use, if it is a lot.

        What the next client needs is mostly what this one needed, so that a little is kept.
        """
        if self.device.type == "cuda":
            held = torch.cuda.memory_reserved(self.device)
            if held - torch.cuda.memory_allocated(self.device) > self._most_unused:
                torch.cuda.empty_cache()


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
