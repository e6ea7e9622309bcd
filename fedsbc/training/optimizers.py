"""Local optimisers: a few in-place operations on the flat vectors of a model.

They compute what `torch.optim.SGD` and `torch.optim.Adam` compute, without the cost of walking
over parameters. What an optimiser keeps between two rounds goes in and out as named arrays.
"""

import math
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from fedsbc.flat_model import as_tensor, to_array
from fedsbc.training.optimizer_options import AdamOptions, OptimizerOptions, SgdOptions
from fedsbc.updates import Update

State: TypeAlias = dict[str, NDArray[Any]]
"""Named arrays that are kept between two rounds: float32 of shape (d,), and scalars."""

MASKED = ("momentum", "first_moment")
"""The arrays in which sent positions are masked."""


class Optimizer(Protocol):
    """Changes the flat weights in place, one step at a time."""

    def reset(self, state: State) -> None:
        """Start a round from a state that `state` returned, or from `{}`: from nothing."""

    def step(self, lr: float) -> None:
        """Take one step with that learning rate along the gradient, which may be overwritten."""

    def state(self) -> State:
        """Return copies of what is kept between two rounds; `{}` if nothing is."""


class Sgd:
    """Stochastic gradient descent on flat tensors of shape (d,), float32."""

    def __init__(self, options: SgdOptions, weights: torch.Tensor, gradient: torch.Tensor) -> None:
        self._options, self._weights, self._gradient = options, weights, gradient
        self._momentum = weights.new_zeros(len(weights) if options.momentum else 0)
        self._is_plain = not (options.momentum or options.weight_decay or options.clip_norm)

    def reset(self, state: State) -> None:
        """Start a round from a state that `state` returned, or from `{}`: from nothing."""
        _restore(self._momentum, state.get("momentum"))

    def step(self, lr: float) -> None:
        """Take one step with that learning rate along the gradient, which may be overwritten."""
        options, gradient = self._options, self._gradient
        if self._is_plain:
            self._weights.add_(gradient, alpha=-lr)
            return
        _adjust(gradient, self._weights, options)
        if options.momentum:
            self._momentum.mul_(options.momentum).add_(gradient)
            if options.nesterov:
                gradient.add_(self._momentum, alpha=options.momentum)
            else:
                gradient = self._momentum
        self._weights.add_(gradient, alpha=-lr)

    def state(self) -> State:
        """Return copies of what is kept between two rounds; `{}` if nothing is."""
        return {"momentum": to_array(self._momentum)} if self._options.keep_momentum else {}


class Adam:
    """Adam on flat tensors of shape (d,), float32."""

    def __init__(self, options: AdamOptions, weights: torch.Tensor, gradient: torch.Tensor) -> None:
        self._options, self._weights, self._gradient = options, weights, gradient
        self._first, self._second, self._scratch = (weights.new_zeros(len(weights)) for _ in "123")
        self._steps = 0

    def reset(self, state: State) -> None:
        """Start a round from a state that `state` returned, or from `{}`: from nothing."""
        _restore(self._first, state.get("first_moment"))
        _restore(self._second, state.get("second_moment"))
        self._steps = int(state.get("steps", 0))

    def step(self, lr: float) -> None:
        """Take one step with that learning rate along the gradient, which may be overwritten."""
        options, gradient = self._options, self._gradient
        _adjust(gradient, self._weights, options)
        self._steps += 1
        self._first.mul_(options.beta1).add_(gradient, alpha=1 - options.beta1)
        self._second.mul_(options.beta2).addcmul_(gradient, gradient, value=1 - options.beta2)
        first_share = 1 - options.beta1**self._steps
        second_share = 1 - options.beta2**self._steps
        divisor = self._scratch.copy_(self._second).sqrt_()
        divisor.div_(math.sqrt(second_share)).add_(options.eps)
        self._weights.addcdiv_(self._first, divisor, value=-lr / first_share)

    def state(self) -> State:
        """Return copies of what is kept between two rounds; `{}` if nothing is."""
        if not self._options.keep_momentum:
            return {}
        return {
            "first_moment": to_array(self._first),
            "second_moment": to_array(self._second),
            "steps": np.array(self._steps, np.int64),
        }


def make(options: OptimizerOptions, weights: torch.Tensor, gradient: torch.Tensor) -> Optimizer:
    """Return the optimiser of those options over flat float32 tensors of shape (d,)."""
    if isinstance(options, SgdOptions):
        return Sgd(options, weights, gradient)
    assert isinstance(options, AdamOptions), f"an optimiser for {options.name}"
    return Adam(options, weights, gradient)


def mask_momentum(state: State, update: Update) -> None:
    """Set the momentum to zero where an update carries something, in place.

    A tensor that is sent whole is masked whole.

    Args:
        state: the optimiser's state after the round whose change was compressed.
        update: what was sent.
    """
    for name in MASKED:
        if name not in state:
            continue
        for view, block in zip(update.layout.split(state[name]), update.blocks, strict=True):
            if block.num_kept == block.size:
                view[:] = 0
            else:
                sent = np.zeros(block.size, np.float32)
                block.add_to(sent)
                view[sent != 0] = 0


def _adjust(gradient: torch.Tensor, weights: torch.Tensor, options: OptimizerOptions) -> None:
    """Clip a gradient and add weight decay, in place."""
    if options.clip_norm is not None:
        norm = float(gradient.norm())
        if norm > options.clip_norm:
            gradient.mul_(options.clip_norm / norm)
    if options.weight_decay:
        gradient.add_(weights, alpha=options.weight_decay)


def _restore(tensor: torch.Tensor, saved: NDArray[np.float32] | None) -> None:
    """Fill a flat tensor with a saved array, or with zeros."""
    if saved is None:
        tensor.zero_()
    else:
        tensor.copy_(as_tensor(saved))
