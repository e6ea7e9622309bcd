"""The Ray actor: one long-lived process that plays any client of the run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, RecordDict

from .counter import Counter
from .flower_private import RUN_ID, identify_server

NodeConfig = dict[str, bool | float | int | str]


class ClientActor:
    """Calls the ClientApp for batches of messages; its only state is what makes it fast.

    Args:
        run_config: as Flower would hand it to the app.
        node_config: what all nodes share; `partition-id` is added for each.
        counter: file that gets the number of messages that this actor has handled.
    """

    def __init__(
        self, run_config: Mapping[str, Any], node_config: NodeConfig, counter: Path
    ) -> None:
        identify_server()
        from clients.app import app  # Flower and torch are imported once, here

        self._app = app
        self._run_config = dict(run_config)
        self._node_config = node_config
        self._handled = Counter(counter, 0)

    def ready(self) -> int:
        """Return this process's id once everything is imported."""
        import os

        return os.getpid()

    def handle(self, batch: Sequence[Message]) -> list[Message]:
        """Return the replies to a batch of messages, in its order."""
        replies = []
        for message in batch:
            replies.append(self._app(message, self._context(message)))
            self._handled.value += 1
        return replies

    def _context(self, message: Message) -> Context:
        node_id = message.metadata.dst_node_id
        return Context(
            run_id=RUN_ID,
            node_id=node_id,
            node_config={**self._node_config, "partition-id": client_of(node_id)},
            state=RecordDict(),
            run_config=self._run_config,
        )


FIRST_NODE_ID = 1000
"""Node ids are not client ids, and nothing may take them for such."""


def client_of(node_id: int) -> int:
    """Return the client of a node."""
    return node_id - FIRST_NODE_ID


def node_of(client_id: int) -> int:
    """Return the node of a client."""
    return client_id + FIRST_NODE_ID
