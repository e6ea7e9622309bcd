"""Sending messages over a Flower Grid and collecting the replies: nothing is lost in silence."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from flwr.app import Message
from flwr.serverapp import Grid

from fedsbc.arrays import Vector

MIN_PAUSE_S, MAX_PAUSE_S = 0.002, 0.1
"""Between two pulls that found nothing; a Grid that waits by itself is never made to wait."""


@runtime_checkable
class SharesWeights(Protocol):
    """A Grid whose clients read the server's weights from shared memory."""

    def publish(self, version: int, weights: Vector, buffers: Vector) -> None:
        """Make the weights of a version readable to the clients."""


MAX_LATE = 1000
"""Requests without a reply that are still looked out for; the oldest are forgotten first."""


@dataclass(frozen=True)
class Closed:
    """A request that nobody waits for any more.

    Attributes:
        node_id: whom it was sent to.
        message_type: Flower's type of the message.
        group_id: the round, as text.
    """

    node_id: int
    message_type: str
    group_id: str

    @classmethod
    def of(cls, request: Message) -> "Closed":
        """Return what is remembered of a request: not its payloads."""
        data = request.metadata
        return cls(data.dst_node_id, data.message_type, data.group_id)

    def is_sender_of(self, reply: Message) -> bool:
        """Whether a reply comes from the node that was asked; errors may be of the grid itself."""
        return reply.has_error() or reply.metadata.src_node_id == self.node_id


@dataclass
class Outgoing:
    """Requests that are made while they are sent: the first are out before the last is made.

    Attributes:
        source: makes them.
        count: how many there will be.
        sent: those that were made.
    """

    source: Iterable[Message]
    count: int
    sent: list[Message] = field(default_factory=list)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Message]:
        for message in self.source:
            self.sent.append(message)
            yield message


class Exchange:
    """Messages out, replies in, on one Grid.

    Args:
        grid: any Flower Grid.
        timeout_s: seconds to wait for the replies to one batch of messages; a Grid that answers
            every message itself, if need be by an error, says so by `ends_every_wait`.
        on_late: called with a closed request and a reply to it that came late, or twice.
    """

    def __init__(
        self,
        grid: Grid,
        timeout_s: float,
        on_late: Callable[[Closed, Message], None] = lambda closed, reply: None,
    ) -> None:
        self.grid = grid
        self.timeout_s = math.inf if getattr(grid, "ends_every_wait", False) else timeout_s
        self.on_late = on_late
        self._late: dict[str, Closed] = {}
        self._answered: dict[str, Closed] = {}

    def run(
        self, messages: Sequence[Message] | Outgoing, on_reply: Callable[[Message, Message], None]
    ) -> list[tuple[Message, str]]:
        """Send messages and hand on each reply as it comes.

        Args:
            messages: the requests; a Grid that goes through them one by one starts with the first.
            on_reply: called once with a request and its reply, which may be an error.

        Returns:
            The requests without a reply, each with the reason.
        """
        out = messages if isinstance(messages, Outgoing) else Outgoing(messages, len(messages))
        pushed = {i for i in self.grid.push_messages(out) if i}
        by_id = {m.metadata.message_id: m for m in out.sent if m.metadata.message_id in pushed}
        failed = [
            (m, "the message could not be sent (too large for the server?)")
            for m in out.sent
            if m.metadata.message_id not in pushed
        ]
        self._answered.clear()
        deadline, pause_s = time.monotonic() + self.timeout_s, MIN_PAUSE_S
        while by_id:
            replies = list(self.grid.pull_messages([*by_id, *self._late]))
            for reply in replies:
                self._hand_on(reply, by_id, on_reply)
            if time.monotonic() >= deadline:
                break
            pause_s = MIN_PAUSE_S if replies else min(2 * pause_s, MAX_PAUSE_S)
            if by_id and not replies:
                time.sleep(pause_s)
        self._late.update({i: Closed.of(message) for i, message in by_id.items()})
        while len(self._late) > MAX_LATE:
            del self._late[next(iter(self._late))]
        reason = f"no reply within {self.timeout_s:g} s"
        return failed + [(message, reason) for message in by_id.values()]

    def _hand_on(
        self,
        reply: Message,
        by_id: dict[str, Message],
        on_reply: Callable[[Message, Message], None],
    ) -> None:
        """Match a reply to its request."""
        message_id = reply.metadata.reply_to_message_id
        if message_id in by_id:
            closed = Closed.of(by_id[message_id])
            if closed.is_sender_of(reply):
                self._answered[message_id] = closed
                on_reply(by_id.pop(message_id), reply)
        else:
            late = self._answered.get(message_id) or self._late.pop(message_id, None)
            if late is not None and late.is_sender_of(reply):
                self.on_late(late, reply)
