"""Local training: from the server's weights to a client's change of them.

A trainer is allocated once per process and serves any client. What it returns depends on its
arguments alone, not on the clients it served before: weights, buffers, momentum, torch's global
generator (dropout) and integer buffers are all set at the start of each call.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import nn

from fedsbc.arrays import Vector, aligned_vector
from fedsbc.flat_model import FlatModel, as_tensor, to_array
from fedsbc.seeds import Stream, generator, torch_seed
from fedsbc.training.batches import Rows, Samples, as_samples, batches, gather, num_batches
from fedsbc.training.determinism import make_deterministic, seed_torch
from fedsbc.training.optimizer_options import OptimizerOptions
from fedsbc.training.optimizers import State, make
from fedsbc.training.schedules import ScheduleOptions
from fedsbc.training.sequential import SequentialGradient, gradient_of

BUFFER_PREFIX = "buffer."
"""Before the names of integer buffers in a client's state."""

Change: TypeAlias = Vector | torch.Tensor
"""A change of the model, float32, shape (d,): an array, or a tensor on the model's device."""

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class TrainingOptions(Protocol):
    """What training needs of the config's `clients`."""

    @property
    def local_steps(self) -> int | None:
        """SGD steps between two exchanges."""

    @property
    def batch_size(self) -> int:
        """Samples a step."""

    @property
    def optimizer(self) -> Any:
        """Options of the optimiser."""

    @property
    def schedule(self) -> Any:
        """Options of the learning-rate schedule."""


@dataclass(frozen=True, eq=False)
class TrainResult:
    """What a client has after a round of local training.

    Attributes:
        change: local weights minus base weights, float32, shape (d,), where the model is: an
            aligned array, or a tensor on its device. It is not finite where training diverged:
            whoever compresses it refuses it.
        buffers: float buffers after training, float32.
        loss: mean over the steps of the batches' mean loss; 0.0 without steps.
        num_steps: local steps taken; 0 for a client without samples.
        num_samples: samples that the client has.
        optimizer_state: what the client keeps for its next round: momentum, where it is kept,
            and integer buffers.
    """

    change: Change
    buffers: Vector
    loss: float
    num_steps: int
    num_samples: int
    optimizer_state: State

    @cached_property
    def delta(self) -> Vector:
        """The change in main memory."""
        return self.change if isinstance(self.change, np.ndarray) else to_array(self.change)


class Trainer:
    """Trains one client after the other on one model."""

    def __init__(
        self, model: FlatModel, clients: TrainingOptions, *, local_epochs: int | None = None
    ) -> None:
        """Allocate what training needs.

        Args:
            model: the model, which `train` overwrites.
            clients: local steps, batch size, optimiser and schedule.
            local_epochs: passes over a client's samples, instead of `clients.local_steps`.
        """
        assert isinstance(clients.optimizer, OptimizerOptions), "options of an optimiser"
        assert isinstance(clients.schedule, ScheduleOptions), "options of a schedule"
        assert clients.local_steps or local_epochs, "steps or epochs"
        make_deterministic(model.device)
        self._model, self._batch_size = model, clients.batch_size
        self._local_steps, self._local_epochs = clients.local_steps, local_epochs
        self._lr, self._schedule = clients.optimizer.lr, clients.schedule
        self._gradient = gradient_of(model)
        # Layers whose gradients are written out draw nothing, and need neither mode nor autograd.
        self._runs_module = not isinstance(self._gradient, SequentialGradient)
        self._optimizer = make(clients.optimizer, model.flat_weights, model.gradient)
        self._norms = [m for m in model.module.modules() if isinstance(m, NORMS)]
        self._base = model.flat_weights.clone() if model.device.type != "cpu" else None
        self._integers = {name: b.clone() for name, b in model.integer_buffers.items()}

    def num_steps(self, num_samples: int) -> int:
        """Return the local steps of a round for a client with so many samples."""
        if num_samples == 0:
            return 0
        if self._local_epochs is None:
            assert self._local_steps is not None
            return self._local_steps
        return self._local_epochs * num_batches(num_samples, self._batch_size, bool(self._norms))

    def train(
        self,
        base: Vector,
        buffers: Vector,
        x: Samples,
        y: Samples,
        *,
        seed: int,
        client_id: int,
        round: int,
        first_step: int,
        optimizer_state: State | None = None,
        rows: Rows | None = None,
        out: Vector | None = None,
    ) -> TrainResult:
        """Train one client for one round.

        Args:
            base: weights to start from, float32, shape (d,); read only.
            buffers: float buffers to start from, float32; read only.
            x: normalised samples, float32, shape (N, channels, height, width); read only.
            y: class numbers, int64, shape (N,); read only.
            seed: of the run.
            client_id: of the client.
            round: of the run, 1 and up.
            first_step: number of local steps before this round, for the schedule.
            optimizer_state: what the client's previous round returned; None before its first.
            rows: the client's rows in x and y, int64; None: all of them.
            out: where the delta goes, shape (d,), aligned; None: a new vector. On a GPU the
                change stays there.
        """
        make_deterministic(self._model.device)
        rows = np.arange(len(y)) if rows is None else rows
        self._restore(base, buffers, optimizer_state or {}, seed, client_id, round)
        num_steps = self.num_steps(len(rows))
        total = 0.0
        if num_steps:
            draws = generator(seed, Stream.BATCHES, client_id, round)
            order = batches(len(rows), self._batch_size, draws, bool(self._norms))
            steps = islice(order, num_steps)
            chosen = gather(as_samples(x), as_samples(y), rows, steps, self._model.device)
            total = self._run(chosen, first_step)
        return TrainResult(
            self._change(base, out),
            to_array(self._model.flat_buffers),
            total / max(1, num_steps),
            num_steps,
            len(rows),
            self._state(),
        )

    def _change(self, base: Vector, out: Vector | None) -> Change:
        """Return the change since the base, where the model is."""
        if self._base is not None:
            return self._model.flat_weights - self._base
        out = aligned_vector(self._model.num_params) if out is None else out
        to_array(self._model.flat_weights, out)
        out -= base
        return out

    def _restore(
        self,
        base: Vector,
        buffers: Vector,
        state: State,
        seed: int,
        client_id: int,
        round: int,
    ) -> None:
        """Set everything that training depends on."""
        self._model.load(base, buffers)
        if self._base is not None:
            self._base.copy_(self._model.flat_weights)
        for name, buffer in self._model.integer_buffers.items():
            saved = state.get(BUFFER_PREFIX + name)
            buffer.copy_(self._integers[name] if saved is None else as_tensor(saved))
        self._optimizer.reset(state)
        if self._runs_module:
            self._model.module.train()
            seed_torch(torch_seed(seed, Stream.TORCH, client_id, round), self._model.device)

    def _run(self, chosen: Iterable[tuple[torch.Tensor, torch.Tensor]], first_step: int) -> float:
        """Take one step for each batch of samples, and return the sum of their losses."""
        losses = []
        with torch.inference_mode(not self._runs_module):
            for step, (samples, labels) in enumerate(chosen, first_step):
                for norm in self._norms:
                    norm.train(len(labels) > 1)
                losses.append(self._gradient(samples, labels))
                self._optimizer.step(self._lr * self._schedule.factor(step))
            return float(torch.stack(losses).double().sum())

    def _state(self) -> State:
        """Return what the client keeps."""
        integers = {
            BUFFER_PREFIX + name: buffer.cpu().numpy().copy()
            for name, buffer in self._model.integer_buffers.items()
        }
        return self._optimizer.state() | integers
