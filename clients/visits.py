"""Requests that train nothing: a test of the model, and the last synchronisation of a run."""

from typing import Any

from numpy.typing import NDArray

from fedsbc.evaluation import evaluate as evaluate_model
from fedsbc.message import EvaluateReply, EvaluateRequest, SyncReply, SyncRequest
from fedsbc.state import ClientState, StateHome

from .base import base_for
from .residual import settled
from .train import own_buffers
from .worker import Worker


def evaluate(
    worker: Worker,
    home: StateHome,
    client_id: int,
    request: EvaluateRequest,
    arrays: dict[str, bytes],
) -> EvaluateReply:
    """Test the server's model on the samples that the client trains on; nothing is stored.

    Float buffers are the client's own where they are local, and the server's where they are
    averaged.

    Raises:
        FedsbcError: the request cannot be served.
    """
    state = home.load(request.round + 1)
    base = base_for(request, arrays, state, home, worker)
    worker.model.load(base.weights, own_buffers(base, state))
    rows = worker.rows(client_id)
    result = evaluate_model(worker.model, worker.data.train_images[rows], worker.data.y_train[rows])
    return EvaluateReply(
        run_id=request.run_id,
        round=request.round,
        client_id=client_id,
        num_samples=len(rows),
        accuracy=result.accuracy,
        loss=result.loss,
    )


def sync(
    worker: Worker, home: StateHome, client_id: int, request: SyncRequest, arrays: dict[str, bytes]
) -> SyncReply:
    """Come to the last version, settle the last update, and store both.

    The state of the last round that was trained stays beside it: a run that is extended goes on
    from there, as if there had been no synchronisation.

    Raises:
        FedsbcError: the request cannot be served; the stored state is as it was.
    """
    state = home.load(request.round)
    base = base_for(request, arrays, state, home, worker)
    kept: dict[str, NDArray[Any]] = {} if state is None else dict(state.arrays)
    residual = settled(request, state, worker.model.layout)
    kept.pop("pending", None)
    if residual is not None:
        kept["residual"] = residual
    if not base.is_shared:
        kept["base"] = base.weights
        if worker.averages_buffers:
            kept["base-buffers"] = base.buffers
    home.save(ClientState(request.run_id, request.round, request.version, kept))
    return SyncReply(request.run_id, request.round, client_id, base.model)
