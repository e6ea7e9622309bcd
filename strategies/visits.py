"""What the server asks of clients beside training: their own tests, and the last weights."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from flwr.app import Message

from fedsbc.errors import WireError
from fedsbc.message import (
    NEEDS_MODEL,
    EvaluateReply,
    EvaluateRequest,
    SyncReply,
    SyncRequest,
    unpack,
)

from .courier import Parcel
from .round_result import RoundResult
from .rounds import Rounds

Request = TypeVar("Request", EvaluateRequest, SyncRequest)


@dataclass(frozen=True)
class ClientEvaluation:
    """What the clients of a round found on their own samples.

    Attributes:
        accuracy: share of all their samples that the model got right: weighted by samples.
        loss: mean loss over all their samples.
        num_samples: how many these were.
    """

    accuracy: float
    loss: float
    num_samples: int


def evaluate_clients(rounds: Rounds, played: RoundResult) -> ClientEvaluation | None:
    """Let the clients of a round test the model that came out of it.

    No base moves and nothing is acknowledged; a client that fails is left out, and noted.

    Returns:
        None if nobody has a sample.
    """
    parcels = [
        rounds.courier.parcel(EvaluateRequest, asked.member, played.round)
        for asked in played.asked.values()
        if not asked.dropped_out
    ]
    replies: dict[int, EvaluateReply] = {}

    def take(parcel: Parcel[EvaluateRequest], reply: Message) -> str | None:
        fields, _ = unpack(reply.content, EvaluateReply)
        is_sane = 0 <= fields.accuracy <= 1 and math.isfinite(fields.loss)
        if not is_sane or fields.num_samples != parcel.member.num_samples:
            return f"evaluation refused: {fields}"
        replies[parcel.member.client_id] = fields
        return None

    _visit(rounds, played.round, parcels, take)
    return _mean([replies[client_id] for client_id in sorted(replies)])


def _mean(replies: list[EvaluateReply]) -> ClientEvaluation | None:
    num_samples = sum(reply.num_samples for reply in replies)
    if num_samples == 0:
        return None
    accuracy = sum(reply.accuracy * reply.num_samples for reply in replies) / num_samples
    loss = sum(reply.loss * reply.num_samples for reply in replies) / num_samples
    return ClientEvaluation(accuracy, loss, num_samples)


def sync_clients(rounds: Rounds, last_round: int) -> int:
    """Bring every client to the server's weights after the last round.

    The server's view of its clients stays as it was, as if nothing had been sent, so that a run
    that is extended goes on as one that was never synchronised.

    Returns:
        The number of clients that now hold the model.
    """
    number, synced = last_round + 1, []
    members = rounds.members.values()
    parcels = [rounds.courier.parcel(SyncRequest, member, number) for member in members]

    def take(parcel: Parcel[SyncRequest], reply: Message) -> str | None:
        fields, _ = unpack(reply.content, SyncReply)
        if (fields.run_id, fields.round) != (rounds.run_id, number):
            return f"synchronisation refused: {fields}"
        if fields.model != parcel.request.model:
            return f"holds model {fields.model} after the synchronisation"
        synced.append(parcel.member.client_id)
        return None

    _visit(rounds, number, parcels, take)
    return len(synced)


def _visit(
    rounds: Rounds,
    round: int,
    parcels: Iterable[Parcel[Request]],
    take: Callable[[Parcel[Request], Message], str | None],
) -> None:
    """Send requests and hand on the replies; a client that fails is noted, and that is all.

    Args:
        rounds: the run.
        round: the number that the rows get.
        parcels: the requests.
        take: reads a reply, and says what is wrong with it, if anything is.
    """
    by_node = {parcel.member.node_id: parcel for parcel in parcels}

    def on_reply(request: Message, reply: Message) -> None:
        parcel = by_node[request.metadata.dst_node_id]
        client_id = parcel.member.client_id
        if reply.has_error():
            if reply.error.code == NEEDS_MODEL:
                parcel.member.base_version = -1
            problem: str | None = reply.error.reason or f"Flower error {reply.error.code}"
        else:
            rounds.courier.count_reply(parcel.request.KIND, round, client_id, reply)
            try:
                problem = take(parcel, reply)
            except WireError as error:
                problem = f"not a reply of ours: {error}"
        if problem is not None:
            rounds.journal.failure(round, client_id, problem)

    silent = rounds.exchange.run([p.message for p in by_node.values()], on_reply)
    for message, reason in silent:
        client_id = by_node[message.metadata.dst_node_id].member.client_id
        rounds.journal.failure(round, client_id, reason)
