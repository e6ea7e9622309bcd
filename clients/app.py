"""The Flower ClientApp: one for simulation on actors, Flower's own runtime, and devices.

Errors become error replies that carry the traceback, so that the server can name the client and
the round on every engine; the client's stored state is then as it was.
"""

import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp

from fedsbc.errors import RunError
from fedsbc.experiment import experiment_hash
from fedsbc.message import (
    CLIENT_ERROR,
    NEEDS_MODEL,
    EvaluateRequest,
    Hello,
    HelloReply,
    ModelRequest,
    SyncRequest,
    TrainRequest,
    pack,
    unpack,
)

from . import visits
from .base import NeedsModel
from .train import Trained
from .train import train as train_round
from .worker import LOCK, client_id_of, home_of, worker_of

LAST = 2**31
"""A round after every other: `load` before it finds the newest state."""

app = ClientApp()

Handler = Callable[[Message, Context], RecordDict]


def _reply(handler: Handler, message: Message, context: Context) -> Message:
    """Run a handler; a failure becomes an error reply, because an engine may lose exceptions."""
    try:
        with LOCK:
            content = handler(message, context)
    except NeedsModel as error:
        reason = f"needs the full model: {error}"
        return Message(Error(NEEDS_MODEL, reason), reply_to=message)
    except Exception:  # whatever a client does wrong must reach the server, with its traceback
        return Message(Error(CLIENT_ERROR, traceback.format_exc()), reply_to=message)
    return Message(content, reply_to=message)


@app.query()
def query(message: Message, context: Context) -> Message:
    """Say who this node is and what state it holds."""
    return _reply(_hello, message, context)


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train one round and send the update."""
    return _reply(_train, message, context)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Test the server's model on this client's own samples."""
    return _reply(_evaluate, message, context)


@app.query("sync")
def sync(message: Message, context: Context) -> Message:
    """Come to the run's last weights."""
    return _reply(_sync, message, context)


def _hello(message: Message, context: Context) -> RecordDict:
    hello, _ = unpack(message.content, Hello)
    worker, client_id = worker_of(context), client_id_of(context)
    ours = experiment_hash(worker.config)
    if ours != hello.experiment:
        raise RunError(
            f"client {client_id} has another config (hash {ours}) than the server "
            f"({hello.experiment}): start both with the same one"
        )
    state = home_of(context, hello.run_id, client_id).load(LAST)
    reply = HelloReply(
        run_id=hello.run_id,
        client_id=client_id,
        num_samples=len(worker.rows(client_id)),
        layout=worker.model.layout.hash,
        base_version=-1 if state is None else state.base_version,
    )
    return pack(reply)


def _checked_client_id(request: ModelRequest, context: Context) -> int:
    client_id = client_id_of(context)
    if request.client_id != client_id:
        raise RunError(f"asked as client {request.client_id}, but this node is {client_id}")
    return client_id


def _train(message: Message, context: Context) -> RecordDict:
    request, arrays = unpack(message.content, TrainRequest)
    client_id = _checked_client_id(request, context)
    home = home_of(context, request.run_id, client_id)
    worker = worker_of(context)
    folder = context.node_config.get("record-dir")
    keeps_delta = folder is not None
    try:
        trained = train_round(worker, home, client_id, request, arrays, keeps_delta=keeps_delta)
    finally:
        worker.memory.give_back()
    if folder is not None:
        _record(Path(str(folder)), f"{client_id:05d}-{request.round:06d}.npy", trained)
    return pack(trained.reply, trained.payloads)


def _record(folder: Path, name: str, trained: Trained) -> None:
    """Keep the change before compression, and what was dropped from the residual on purpose."""
    np.save(folder / f"delta-{name}", trained.result.delta)
    if trained.forgotten is not None:
        np.save(folder / f"forgotten-{name}", trained.forgotten)


def _evaluate(message: Message, context: Context) -> RecordDict:
    request, arrays = unpack(message.content, EvaluateRequest)
    client_id = _checked_client_id(request, context)
    home = home_of(context, request.run_id, client_id)
    worker = worker_of(context)
    try:
        return pack(visits.evaluate(worker, home, client_id, request, arrays))
    finally:
        worker.memory.give_back()


def _sync(message: Message, context: Context) -> RecordDict:
    request, arrays = unpack(message.content, SyncRequest)
    client_id = _checked_client_id(request, context)
    home = home_of(context, request.run_id, client_id)
    return pack(visits.sync(worker_of(context), home, client_id, request, arrays))
