"""A module whose parameters are views of one flat vector, so that nothing is ever packed.

Weights, gradients and float buffers each lie in one 64-byte aligned float32 vector, in the order
of the layout. On the CPU numpy and torch share that memory: writing to `weights` changes the
module. Integer buffers (such as BatchNorm's batch counter) stay where the module has them.
"""

import hashlib
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fedsbc.arrays import ALIGNMENT_BYTES, Vector, aligned_vector
from fedsbc.errors import ConfigError
from fedsbc.layout import Layout


class FlatModel:
    """A float32 module, re-bound to flat memory.

    Attributes:
        module: the module; its parameters and float buffers are views from now on.
        device: where it lives.
        layout: the parameters; one that is used twice (tied weights) is there once.
        buffer_layout: the persistent float buffers.
        flat_weights: the parameters as one torch tensor of shape (d,), float32.
        flat_buffers: the float buffers as one torch tensor, float32.
    """

    def __init__(self, module: nn.Module, device: str | torch.device = "cpu") -> None:
        """Re-bind the parameters and float buffers of `module`, keeping their values.

        Raises:
            ConfigError: a parameter is frozen, or it or a persistent float buffer is not float32.
        """
        self.module = module.to(device)
        self.device = torch.device(device)
        self._parameters = dict(module.named_parameters())
        persistent = module.state_dict().keys()
        buffers = {name: b for name, b in module.named_buffers() if name in persistent}
        floats = {name: b for name, b in buffers.items() if b.is_floating_point()}
        self.layout = Layout.of((name, p.shape) for name, p in self._parameters.items())
        self.buffer_layout = Layout.of((name, b.shape) for name, b in floats.items())
        self.flat_weights = _bind(self._parameters, self.layout, self.device)
        self.flat_buffers = _bind(floats, self.buffer_layout, self.device)
        self.integer_buffers = {name: b for name, b in buffers.items() if name not in floats}
        self._gradient: torch.Tensor | None = None

    @property
    def num_params(self) -> int:
        """Length d of the flat vector."""
        return self.layout.size

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The parameters in the layout's order."""
        return list(self._parameters.values())

    @property
    def weights(self) -> Vector:
        """The parameters, shape (d,), float32: the memory itself on the CPU, else a copy."""
        return _to_numpy(self.flat_weights)

    @property
    def buffers(self) -> Vector:
        """The float buffers, float32: the memory itself on the CPU, else a copy."""
        return _to_numpy(self.flat_buffers)

    @property
    def gradient(self) -> torch.Tensor:
        """The flat gradient, shape (d,), float32; the parameters' `.grad` are views of it.

        It is allocated and bound when it is first asked for, and `backward` adds to it.
        """
        if self._gradient is None:
            self._gradient = _flat_tensor(self.layout.size, self.device)
            for parameter, view in zip(
                self.parameters, split_tensor(self._gradient, self.layout), strict=True
            ):
                parameter.grad = view
        return self._gradient

    def load(self, weights: Vector, buffers: Vector | None = None) -> None:
        """Copy weights of shape (d,), and float buffers where given, into the module."""
        assert weights.shape == (self.layout.size,), "weights match the layout"
        _copy(weights, self.flat_weights)
        if buffers is not None:
            assert buffers.shape == (self.buffer_layout.size,), "buffers match the layout"
            _copy(buffers, self.flat_buffers)


def model_sha256(weights: Vector, buffers: Vector) -> str:
    """Return the sha256 (hex) of the little-endian weights followed by the float buffers."""
    digest = hashlib.sha256()
    for vector in (weights, buffers):
        digest.update(np.ascontiguousarray(vector, "<f4").data)
    return digest.hexdigest()


def as_tensor(array: NDArray[Any]) -> torch.Tensor:
    """Wrap an array of any shape as a tensor of the same memory; read-only arrays too.

    Arrays in shared memory are read-only, of which torch warns: the tensor is never written to.
    """
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.from_numpy(array)


def to_array(flat: torch.Tensor, out: Vector | None = None) -> Vector:
    """Copy a flat float32 tensor of shape (size,) into `out`, or into a new aligned vector."""
    out = aligned_vector(len(flat)) if out is None else out
    torch.from_numpy(out).copy_(flat)
    return out


def split_tensor(flat: torch.Tensor, layout: Layout) -> list[torch.Tensor]:
    """Return one shaped view per tensor of a flat tensor of shape (d,)."""
    return [flat[spec.slice].view(spec.shape) for spec in layout.tensors]


def _bind(
    tensors: Mapping[str, torch.Tensor], layout: Layout, device: torch.device
) -> torch.Tensor:
    """Move tensors into one flat tensor and make them views of it."""
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32:
            raise ConfigError(f"{name} is {tensor.dtype}, but models are float32 throughout")
        if isinstance(tensor, nn.Parameter) and not tensor.requires_grad:
            raise ConfigError(f"{name} is a frozen parameter: make it a buffer of the module")
    flat = _flat_tensor(layout.size, device)
    for tensor, view in zip(tensors.values(), split_tensor(flat, layout), strict=True):
        view.copy_(tensor.detach())
        tensor.data = view
    return flat


def _flat_tensor(size: int, device: torch.device) -> torch.Tensor:
    """Return zeros of shape (size,), float32, aligned to 64 bytes."""
    if device.type == "cpu":
        return torch.from_numpy(aligned_vector(size))
    flat = torch.zeros(size, device=device)
    assert flat.data_ptr() % ALIGNMENT_BYTES == 0, "device memory is aligned"
    return flat


def _copy(source: Vector, flat: torch.Tensor) -> None:
    """Copy a host vector of shape (size,) into a flat tensor."""
    if flat.device.type == "cpu":
        np.copyto(flat.numpy(), source)
    else:
        flat.copy_(as_tensor(source))


def _to_numpy(flat: torch.Tensor) -> Vector:
    """Return the memory of a CPU tensor, or a host copy of a device tensor."""
    return flat.numpy() if flat.device.type == "cpu" else to_array(flat)
