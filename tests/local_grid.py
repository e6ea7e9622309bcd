"""A Flower Grid in this process, for tests: the real ClientApp, faults on demand."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.serverapp import Grid

from clients.app import app
from fedsbc.config import Config, to_json
from fedsbc.shared_weights import SharedWeights
from sims.flower_private import RUN_ID, give_id, identify_server

FIRST_NODE = 7000

Fault = Callable[[Message], str | None]
"""Says what happens to a request: None, `drop-request`, `drop-reply`, `late` or `twice`."""


class LocalGrid(Grid):
    """Plays every client in this process, in a shuffled order.

    Args:
        config: the experiment.
        state_dir: home of the client states; None: Flower's `context.state`.
        fault: what goes wrong with a request.
        order: seed of the order in which requests are served and replies come back.
        change: turns a reply into another one, for hostile clients.
    """

    def __init__(
        self,
        config: Config,
        state_dir: Path | None = None,
        *,
        fault: Fault = lambda message: None,
        order: int = 0,
        change: Callable[[Message], Message] = lambda reply: reply,
        node_config: dict[str, str] | None = None,
    ) -> None:
        identify_server()
        self.config = config
        self._fault = fault
        self._change = change
        self._order = np.random.default_rng(order)
        self._run_config = {"experiment": to_json(config)}
        self._node_config = dict(node_config or {})
        if state_dir is not None:
            self._node_config["state-dir"] = str(state_dir)
            self.state_folder = state_dir
        self._states = [RecordDict() for _ in range(config.clients.count)]
        self._replies: list[Message] = []
        self._late: list[Message] = []
        self.sent_content: list[RecordDict] = []
        self.received_content: list[RecordDict] = []

    def context(self, node_id: int) -> Context:
        client_id = node_id - FIRST_NODE
        node_config = {**self._node_config, "partition-id": client_id}
        return Context(RUN_ID, node_id, node_config, self._states[client_id], self._run_config)

    def get_node_ids(self) -> Iterable[int]:
        return [FIRST_NODE + i for i in range(self.config.clients.count)]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        requests = list(messages)
        ids = [give_id(m) for m in requests]
        self._replies += self._late
        self._late = []
        for index in self._order.permutation(len(requests)):
            self._serve(requests[index])
        return ids

    def _serve(self, request: Message) -> None:
        fault = self._fault(request)
        self.sent_content.append(request.content)
        if fault == "drop-request":
            return
        reply = self._change(app(request, self.context(request.metadata.dst_node_id)))
        if reply.has_content():
            self.received_content.append(reply.content)
        if fault == "late":
            self._late.append(reply)
        elif fault != "drop-reply":
            self._replies += [reply] * (2 if fault == "twice" else 1)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        wanted = set(message_ids)
        ready = [m for m in self._replies if m.metadata.reply_to_message_id in wanted]
        self._replies = [m for m in self._replies if m.metadata.reply_to_message_id not in wanted]
        return [ready[i] for i in self._order.permutation(len(ready))]

    def send_and_receive(self, messages, *, timeout=None):
        ids = list(self.push_messages(messages))
        return self.pull_messages(ids)

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None):
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def set_run(self, run):
        raise NotImplementedError

    @property
    def run(self):
        raise NotImplementedError


class SharingGrid(LocalGrid):
    """The same with the server's weights in shared memory."""

    def __init__(self, config: Config, state_dir: Path, **options) -> None:
        super().__init__(config, state_dir, **options)
        self._shared = SharedWeights(state_dir)

    def publish(self, version, weights, buffers):
        self._shared.publish(version, weights, buffers)
