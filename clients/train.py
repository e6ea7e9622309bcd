"""One round at a client: settle the last update, train, compress, store, reply."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.compressors import State
from fedsbc.feedback import Compressed
from fedsbc.message import TrainReply, TrainRequest
from fedsbc.payload import encode
from fedsbc.seeds import Stream, generator
from fedsbc.state import ClientState, StateHome
from fedsbc.training import TrainResult, mask_momentum
from fedsbc.updates import DenseBlock, Update

from .base import Base, base_for
from .compression import compress
from .residual import Residual, after_absence, settled
from .worker import Worker


@dataclass(frozen=True)
class Trained:
    """What a round at a client gives.

    Attributes:
        reply: the fields of its reply.
        payloads: those of its reply.
        result: of the training. Its `delta`, if it was kept, is the change before compression,
            until the next client trains; otherwise the residual has taken its place.
        forgotten: what it dropped from its residual on purpose, float32, shape (d,), or None.
    """

    reply: TrainReply
    payloads: dict[str, bytes]
    result: TrainResult
    forgotten: Vector | None


def train(
    worker: Worker,
    home: StateHome,
    client_id: int,
    request: TrainRequest,
    arrays: dict[str, bytes],
    *,
    keeps_delta: bool = False,
) -> Trained:
    """Take part in one round; `keeps_delta` leaves the change before compression as it is.

    Raises:
        FedsbcError: the request cannot be served; the stored state is as it was.
    """
    state = home.load(request.round)
    base = base_for(request, arrays, state, home, worker)
    residual = _residual(worker, request, state)
    result = _train_locally(worker, client_id, request, base, state)
    compressed = compress(
        worker.compressor,
        result.change,
        residual.kept,
        worker.model.layout,
        part(state, "compressor.") or worker.compressor.init_state(worker.model.layout),
        generator(worker.config.seed, Stream.COMPRESS_UP, client_id, request.round),
        in_place=not keeps_delta,
    )
    payload = encode(compressed.update)
    home.save(_next_state(worker, request, base, result, compressed, payload))
    reply = TrainReply(
        run_id=request.run_id,
        round=request.round,
        client_id=client_id,
        base_version=request.version,
        num_samples=result.num_samples,
        num_steps=result.num_steps,
        train_loss=float(result.loss),
        forgotten=residual.forgotten_mass,
    )
    return Trained(reply, _payloads(worker, payload, result), result, residual.forgotten)


def _residual(worker: Worker, request: TrainRequest, state: ClientState | None) -> Residual:
    missed_rounds = 0 if state is None else request.round - state.round - 1
    residual = settled(request, state, worker.model.layout)
    return after_absence(residual, missed_rounds, worker.config.residual)


def _train_locally(
    worker: Worker, client_id: int, request: TrainRequest, base: Base, state: ClientState | None
) -> TrainResult:
    x, y, rows = worker.samples(client_id)
    return worker.trainer.train(
        base.weights,
        own_buffers(base, state),
        x,
        y,
        seed=worker.config.seed,
        client_id=client_id,
        round=request.round,
        first_step=(request.round - 1) * worker.trainer.num_steps(len(rows)),
        optimizer_state=part(state, "optimizer."),
        rows=rows,
        out=worker.change,
    )


def own_buffers(base: Base, state: ClientState | None) -> Vector:
    """Return the float buffers to start from: a client's own, where they are local."""
    if state is not None and "buffers" in state.arrays:
        return state.arrays["buffers"]
    return base.buffers


def part(state: ClientState | None, prefix: str) -> State:
    """Return the arrays of a state whose names begin with a prefix, without it."""
    arrays = {} if state is None else state.arrays
    return {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}


def _next_state(
    worker: Worker,
    request: TrainRequest,
    base: Base,
    result: TrainResult,
    compressed: Compressed,
    payload: bytes,
) -> ClientState:
    arrays: dict[str, NDArray[Any]] = {}
    if compressed.residual is not None:
        arrays["residual"] = compressed.residual
        arrays["pending"] = np.frombuffer(payload, np.uint8)
    if not base.is_shared:
        arrays["base"] = base.weights
    if worker.config.model.buffers == "local" and len(result.buffers):
        arrays["buffers"] = result.buffers
    arrays.update({f"compressor.{name}": a for name, a in compressed.state.items()})
    if worker.config.clients.optimizer.mask_momentum:
        mask_momentum(result.optimizer_state, compressed.update)
    arrays.update({f"optimizer.{name}": a for name, a in result.optimizer_state.items()})
    return ClientState(request.run_id, request.round, request.version, arrays)


def _payloads(worker: Worker, payload: bytes, result: TrainResult) -> dict[str, bytes]:
    """Return the payloads of a reply: the update, and the float buffers where they are averaged."""
    payloads = {"update": payload}
    if worker.averages_buffers:
        layout = worker.model.buffer_layout
        blocks = [DenseBlock(view) for view in layout.split(result.buffers)]
        payloads["buffers"] = encode(Update(layout, blocks))
    return payloads
