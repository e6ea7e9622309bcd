"""A Flower client mod: updates of somebody else's ClientApp travel compressed.

The app goes on as it was: it gets its arrays in an `ArrayRecord`, trains, and sends arrays of the
same names back. The mod turns our strategy's request into such a message, and the app's arrays
into one compressed update; residual and base live in the same homes as those of our own clients.
"""

import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from numpy.typing import NDArray

from fedsbc.arrays import Vector
from fedsbc.config import Config
from fedsbc.errors import RunError
from fedsbc.experiment import experiment_hash, upstream_compressor
from fedsbc.layout import Layout
from fedsbc.message import CLIENT_ERROR, NEEDS_MODEL, Hello, HelloReply, TrainRequest, pack, unpack
from fedsbc.training import TrainResult

from .base import NeedsModel
from .train import train
from .worker import LOCK, Worker, client_id_of, home_of

CallNext = Callable[[Message, Context], Message]
LAST = 2**31
"""A round after every other: `load` before it finds the newest state."""


class CompressionMod:
    """Compresses what a ClientApp sends: `ClientApp(mods=[mod])`, then `mod.answer_queries(app)`.

    Args:
        config: from `app_config`, the same on both sides.
        initial_arrays: makes the app's arrays; only names and shapes are read.
        num_samples: the node's training samples, for `aggregation: examples`; 1 for each if None.
    """

    def __init__(
        self,
        config: Config,
        initial_arrays: Callable[[], ArrayRecord],
        num_samples: Callable[[Context], int] | None = None,
    ) -> None:
        self._config = config
        self._compressor = upstream_compressor(config)
        self._num_samples = num_samples or (lambda context: 1)
        self._shapes = {n: tuple(a.shape) for n, a in initial_arrays().items()}
        self._layout = Layout.of(self._shapes.items())

    def answer_queries(self, app: ClientApp) -> None:
        """Let the app say who it is when our strategy asks."""
        app.query()(lambda message, context: self._reply(self._hello, message, context))

    def __call__(self, message: Message, context: Context, call_next: CallNext) -> Message:
        """Serve a request to train with the app; everything else passes through."""
        if message.metadata.message_type.partition(".")[0] != "train":
            return call_next(message, context)
        return self._reply(
            lambda m, c: self._train(m, c, call_next), message, context
        )  # fmt: skip

    def _reply(
        self, handler: Callable[[Message, Context], RecordDict], message: Message, context: Context
    ) -> Message:
        """Run a handler; a failure becomes an error reply."""
        try:
            with LOCK:
                content = handler(message, context)
        except NeedsModel:
            return Message(Error(NEEDS_MODEL, traceback.format_exc()), reply_to=message)
        except Exception:  # as in `clients.app`: the server must see it
            return Message(Error(CLIENT_ERROR, traceback.format_exc()), reply_to=message)
        return Message(content, reply_to=message)

    def _hello(self, message: Message, context: Context) -> RecordDict:
        hello, _ = unpack(message.content, Hello)
        client_id = client_id_of(context)
        if experiment_hash(self._config) != hello.experiment:
            raise RunError(f"client {client_id} has another config than the server")
        state = home_of(context, hello.run_id, client_id).load(LAST)
        return pack(
            HelloReply(
                run_id=hello.run_id,
                client_id=client_id,
                num_samples=self._num_samples(context),
                layout=self._layout.hash,
                base_version=-1 if state is None else state.base_version,
            )
        )

    def _train(self, message: Message, context: Context, call_next: CallNext) -> RecordDict:
        request, payloads = unpack(message.content, TrainRequest)
        client_id = client_id_of(context)
        if request.client_id != client_id:
            raise RunError(f"asked as client {request.client_id}, but this node is {client_id}")
        worker = self._worker(message, context, call_next)
        home = home_of(context, request.run_id, client_id)
        trained = train(cast(Worker, worker), home, client_id, request, payloads)
        return pack(trained.reply, trained.payloads)

    def _worker(self, message: Message, context: Context, call_next: CallNext) -> Any:
        """Return what `train` asks of a worker, with the app in the place of our trainer."""
        nobody = Layout(())

        def by_the_app(base: Vector, *_: Any, round: int, **__: Any) -> TrainResult:
            return self._by_the_app(message, context, call_next, base, round)

        num_samples = self._num_samples(context)
        return SimpleNamespace(
            config=self._config,
            compressor=self._compressor,
            model=SimpleNamespace(layout=self._layout, buffer_layout=nobody),
            trainer=SimpleNamespace(train=by_the_app, num_steps=lambda count: 1),
            samples=lambda client_id: (None, None, np.arange(num_samples)),
            averages_buffers=False,
            initial_buffers=nobody.zeros(),
            change=None,
        )

    def _by_the_app(
        self, message: Message, context: Context, call_next: CallNext, base: Vector, round: int
    ) -> TrainResult:
        """Let the app train from the base and return the change that it made."""
        arrays = {
            name: Array(view.reshape(self._shapes[name]).copy())
            for name, view in zip(self._shapes, self._layout.split(base), strict=True)
        }
        message.content = RecordDict(
            {"arrays": ArrayRecord(arrays), "config": ConfigRecord({"server-round": round})}
        )
        reply = call_next(message, context)
        if reply.has_error():
            raise RunError(f"the app failed: {reply.error.reason or reply.error.code}")
        delta = self._layout.zeros()
        for view, array in zip(self._layout.split(delta), self._trained(reply), strict=True):
            view[:] = array
        delta -= base
        num_samples = self._num_samples(context)
        return TrainResult(delta, Layout(()).zeros(), _loss(reply), 1, num_samples, {})

    def _trained(self, reply: Message) -> list[NDArray[Any]]:
        """Return the app's arrays in the order of the layout, flat.

        Raises:
            RunError: they are not those that it was given.
        """
        sent = next(iter(reply.content.array_records.values()), ArrayRecord())
        found = {name: tuple(array.shape) for name, array in sent.items()}
        if found != self._shapes:
            raise RunError(f"the app sent arrays {found}; it was given {self._shapes}")
        return [sent[name].numpy().reshape(-1) for name in self._shapes]


def _loss(reply: Message) -> float:
    """Return the metric whose name holds `loss`, or NaN."""
    for metrics in reply.content.metric_records.values():
        for name, value in metrics.items():
            if "loss" in name and isinstance(value, int | float):
                return float(value)
    return float("nan")
