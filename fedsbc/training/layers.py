"""Layers with their gradients written out, for models that are plain sequences of them.

A layer computes its output and keeps what its gradient needs; `backward` takes the gradient of
the output, writes that of the parameters into the flat vector, and returns that of the input.
The kernels are torch's own; what is saved is the bookkeeping of autograd around them.
"""

from typing import Protocol

import torch
from torch import nn
from torch.nn import functional

aten = torch.ops.aten


class Layer(Protocol):
    """One layer; `forward` comes before `backward`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output of a batch."""

    def backward(self, gradient: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Return the gradient of the input; anything where `is_first`: nobody needs it then."""


class Linear:
    """`nn.Linear` with bias, for x of shape (n, features)."""

    def __init__(self, module: nn.Linear) -> None:
        self._weight, self._weight_gradient = _bound(module.weight)
        self._bias, self._bias_gradient = _bound(module.bias)
        self._transposed = self._weight.t()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x W' + b."""
        self._x = x
        return torch.addmm(self._bias, x, self._transposed)

    def backward(self, gradient: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Write the gradients of W and b, and return that of x."""
        torch.mm(gradient.t(), self._x, out=self._weight_gradient)
        torch.sum(gradient, 0, out=self._bias_gradient)
        return gradient if is_first else torch.mm(gradient, self._weight)


class Conv2d:
    """`nn.Conv2d` with bias, padded with zeros if at all."""

    def __init__(self, module: nn.Conv2d) -> None:
        self._weight, self._weight_gradient = _bound(module.weight)
        self._bias, self._bias_gradient = _bound(module.bias)
        assert isinstance(module.padding, tuple), "padding in numbers"
        self._shape = (module.stride, module.padding, module.dilation, module.groups)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the convolution of x."""
        self._x = x
        return functional.conv2d(x, self._weight, self._bias, *self._shape)

    def backward(self, gradient: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Write the gradients of kernels and bias, and return that of x."""
        stride, padding, dilation, groups = self._shape
        of_x, of_weight, of_bias = aten.convolution_backward(
            gradient,
            self._x,
            self._weight,
            self._bias.shape,
            stride,
            padding,
            dilation,
            False,
            (0, 0),
            groups,
            (not is_first, True, True),
        )
        self._weight_gradient.copy_(of_weight)
        self._bias_gradient.copy_(of_bias)
        return gradient if is_first else of_x


class MaxPool2d:
    """`nn.MaxPool2d`."""

    def __init__(self, module: nn.MaxPool2d) -> None:
        sizes = module.kernel_size, module.stride, module.padding, module.dilation
        self._sizes = [(size, size) if isinstance(size, int) else tuple(size) for size in sizes]
        self._ceil_mode = module.ceil_mode

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the maxima of x."""
        y: torch.Tensor
        y, self._indices = aten.max_pool2d_with_indices(x, *self._sizes, self._ceil_mode)
        self._x = x
        return y

    def backward(self, gradient: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Return the gradient of x: it goes to where the maxima were."""
        of_x: torch.Tensor = aten.max_pool2d_with_indices_backward(
            gradient, self._x, *self._sizes, self._ceil_mode, self._indices
        )
        return of_x


class ReLU:
    """`nn.ReLU`; in place, which no layer here minds."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the positive part of x."""
        self._y = x.relu_()
        return self._y

    def backward(self, gradient: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Return the gradient where the output was above zero."""
        of_x: torch.Tensor = aten.threshold_backward(gradient, self._y, 0)
        return of_x


class Flatten:
    """`nn.Flatten` of all but the batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x in shape (n, features)."""
        self._shape = x.shape
        return x.flatten(1)

    def backward(self, gradient: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Return the gradient in the shape of x, images with channels last in memory."""
        shaped = gradient.view(self._shape)
        if len(self._shape) != 4:
            return shaped
        return shaped.contiguous(memory_format=torch.channels_last)


def layer_of(module: nn.Module) -> Layer | None:
    """Return the layer that does what a module does, or None if there is none here.

    A subclass may do anything: only the classes themselves are known.
    """
    match module:
        case nn.Linear(bias=nn.Parameter()) if type(module) is nn.Linear:
            return Linear(module)
        case nn.Conv2d(bias=nn.Parameter(), padding=tuple(), padding_mode="zeros") if (
            type(module) is nn.Conv2d
        ):
            return Conv2d(module)
        case nn.MaxPool2d(return_indices=False) if type(module) is nn.MaxPool2d:
            return MaxPool2d(module)
        case nn.Flatten(start_dim=1, end_dim=-1) if type(module) is nn.Flatten:
            return Flatten()
        case nn.ReLU() if type(module) is nn.ReLU:
            return ReLU()
    return None


def _bound(parameter: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a parameter and its gradient, both views of a model's flat vectors."""
    assert parameter is not None, "a parameter"
    assert parameter.grad is not None, "gradients are bound"
    return parameter.detach(), parameter.grad
