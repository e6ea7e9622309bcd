"""From a batch to its loss and gradient, by autograd: for every module."""

from typing import Protocol

import torch
from torch.nn import functional

from fedsbc.flat_model import FlatModel, split_tensor


class Gradient(Protocol):
    """Computes the loss of a batch, and leaves the gradient in `model.gradient`."""

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the mean cross entropy of a batch, a detached scalar, float32.

        Args:
            x: samples, float32, shape (n, ...).
            y: class numbers, int64, shape (n,).
        """


class AutogradGradient:
    """The gradient of any module whose outputs are logits of shape (n, classes).

    The gradients that autograd makes are copied into the flat vector: cheaper than to zero it
    and to let autograd add to it.
    """

    def __init__(self, model: FlatModel) -> None:
        self._module, self._parameters = model.module, model.parameters
        self._gradients = split_tensor(model.gradient, model.layout)

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the mean cross entropy of a batch, and fill `model.gradient`."""
        loss = functional.cross_entropy(self._module(x), y)
        found = torch.autograd.grad(loss, self._parameters, allow_unused=True)
        for view, gradient in zip(self._gradients, found, strict=True):
            if gradient is None:
                view.zero_()
            else:
                view.copy_(gradient)
        return loss.detach()
