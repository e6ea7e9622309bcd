"""Sending messages over a Flower Grid and collecting the replies: nothing is lost in silence."""

import time
from collections.abc import Callable, Iterable
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


class Exchange:
    """Messages out, replies in, on one Grid.

    Args:
        grid: any Flower Grid.
        timeout_s: seconds to wait for the replies to one batch of messages.
    """

    def __init__(self, grid: Grid, timeout_s: float) -> None:
        self.grid = grid
        self.timeout_s = timeout_s
        self._late: set[str] = set()

    def run(
        self,
        messages: Iterable[Message],
        on_reply: Callable[[Message, Message], None],
        on_late: Callable[[Message], None],
    ) -> list[tuple[Message, str]]:
        """Send messages and hand on each reply as it comes.

        Args:
            messages: the requests.
            on_reply: called with a request and its reply, which may be an error.
            on_late: called with a reply to a request of an earlier, closed batch.

        Returns:
            The requests without a reply, each with the reason.
        """
        requests = list(messages)
        pushed = {i for i in self.grid.push_messages(requests) if i}
        by_id = {m.metadata.message_id: m for m in requests if m.metadata.message_id in pushed}
        failed = [
            (m, "the message could not be sent (too large for the server?)")
            for m in requests
            if m.metadata.message_id not in pushed
        ]
        deadline, pause_s = time.monotonic() + self.timeout_s, MIN_PAUSE_S
        while by_id and time.monotonic() < deadline:
            replies = list(self.grid.pull_messages([*by_id, *self._late]))
            for reply in replies:
                self._hand_on(reply, by_id, on_reply, on_late)
            pause_s = MIN_PAUSE_S if replies else min(2 * pause_s, MAX_PAUSE_S)
            if by_id and not replies:
                time.sleep(pause_s)
        self._late.update(by_id)
        reason = f"no reply within {self.timeout_s:g} s"
        return failed + [(message, reason) for message in by_id.values()]

    def _hand_on(
        self,
        reply: Message,
        by_id: dict[str, Message],
        on_reply: Callable[[Message, Message], None],
        on_late: Callable[[Message], None],
    ) -> None:
        message_id = reply.metadata.reply_to_message_id
        if message_id in by_id:
            on_reply(by_id.pop(message_id), reply)
        elif message_id in self._late:
            self._late.discard(message_id)
            on_late(reply)
