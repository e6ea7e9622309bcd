"""A Flower Grid on a pool of Ray actors: the same apps, without Flower's message store between."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flwr.app import Error, Message, RecordDict
from flwr.serverapp import Grid

from fedsbc.arrays import Vector

from . import signals
from .actor import client_of, node_of
from .fleet import Fleet
from .flower_private import give_id
from .pool import ActorPool, JobDone

if TYPE_CHECKING:
    from .flower_private import Run

WAIT_S = 0.2
"""How long a pull waits for a reply: no reply waits for the next pull."""

MAX_BATCH = 16
"""Clients of one call of an actor."""

SHARE = 1.5
"""An actor's share of what is left is cut into so many batches, so that actors end together."""

LEAST = 4
"""Clients of one call in a round that is not short: a call costs as much as a small client."""

ACTOR_ERROR = 1001


class RayGrid(Grid):
    """Messages to clients, each played by any actor of the client's site.

    Args:
        pool: the actors.
        fleet: the sites that they are on, and whose home is where.
        num_clients: clients 0 to num_clients - 1.
    """

    ends_every_wait = True
    """The pool gives a client its time from when it is its turn, not from the start of a round."""

    def __init__(self, pool: ActorPool, fleet: Fleet, num_clients: int) -> None:
        self._pool = pool
        self._fleet = fleet
        self._num_clients = num_clients
        self.state_folder = fleet.sites[0].states
        self._replies: dict[str, Message] = {}
        self._outstanding = 0

    def publish(self, version: int, weights: Vector, buffers: Vector) -> None:
        """Put the weights of a version into the shared memory of each site."""
        self._fleet.publish(version, weights, buffers)

    def gather(self, run_id: str, before_round: int, known: Mapping[int, int]) -> list[Path]:
        """Bring the states of other sites here, see `fedsbc.checkpoint.save`."""
        return self._fleet.gather(run_id, before_round, known)

    def get_node_ids(self) -> Iterable[int]:
        """Return the node ids."""
        return [node_of(client_id) for client_id in range(self._num_clients)]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Hand messages to the actors in batches; return their ids in order.

        On one machine a batch is handed over as soon as its messages are made, where their number
        is known before.
        """
        if len(self._fleet.sites) == 1 and isinstance(messages, Sized):
            return self._submit(messages, len(messages), 0)
        requests = list(messages)
        self._fleet.settle([_client_of(message) for message in requests])
        parts: dict[int, list[Message]] = defaultdict(list)
        for message in requests:
            parts[self._fleet.home_of(_client_of(message))].append(message)
        for site, part in parts.items():
            self._submit(part, len(part), site)
        return [message.metadata.message_id for message in requests]

    def _submit(self, messages: Iterable[Message], count: int, site: int) -> list[str]:
        """Give messages their ids and queue them in batches for the actors of a site."""
        ids: list[str] = []
        waiting = iter(messages)
        for size in batch_sizes(count, self._fleet.sites[site].num_actors):
            batch = list(islice(waiting, size))
            ids += [give_id(message) for message in batch]
            self._outstanding += len(batch)
            self._pool.submit(batch, site)
        assert next(waiting, None) is None, "as many messages as were announced"
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return replies that are there; wait a little if there are none."""
        signals.check()
        wanted = set(message_ids)
        if self._outstanding and not wanted & self._replies.keys():
            for done in self._pool.wait(WAIT_S):
                self._outstanding -= len(done.job.messages)
                self._replies.update({m.metadata.reply_to_message_id: m for m in _replies_of(done)})
        return [self._replies.pop(i) for i in wanted & self._replies.keys()]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages and wait for all replies; the pool's own timeout ends the wait."""
        waiting = set(self.push_messages(messages))
        replies: list[Message] = []
        while waiting:
            new = list(self.pull_messages(waiting))
            waiting -= {m.metadata.reply_to_message_id for m in new}
            replies += new
        return replies

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Return a new message."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def set_run(self, run: "Run") -> None:
        """Refuse: this Grid serves the one run that it was made for."""
        raise NotImplementedError("a RayGrid serves one run")

    @property
    def run(self) -> Any:
        """Refuse: there is no SuperLink that knows the run."""
        raise NotImplementedError("a RayGrid has no SuperLink run")


def batch_sizes(count: int, num_actors: int) -> Iterator[int]:
    """Yield the sizes of the batches of so many messages: large ones first.

    >>> list(batch_sizes(40, 2)), list(batch_sizes(4, 2))
    ([14, 9, 6, 4, 4, 3], [2, 1, 1])
    """
    least = min(LEAST, max(1, count // (5 * num_actors)))
    while count:
        size = min(MAX_BATCH, count, max(least, math.ceil(count / (SHARE * num_actors))))
        yield size
        count -= size


def _client_of(message: Message) -> int:
    return client_of(message.metadata.dst_node_id)


def _replies_of(done: JobDone) -> Sequence[Message]:
    """Return the replies of a job; a job that failed gives an error for each message."""
    if done.failure is None:
        return done.replies
    error = Error(ACTOR_ERROR, done.failure)
    return [Message(error, reply_to=message) for message in done.job.messages]
