"""One round: downlink, training, intake, aggregation; what it changes and what it costs."""

import math
from collections.abc import Container, Iterator
from dataclasses import dataclass

from flwr.app import Message

from fedsbc import availability
from fedsbc.arrays import Vector
from fedsbc.config import Config
from fedsbc.errors import RunError, UpdateError, WireError
from fedsbc.layout import is_finite
from fedsbc.ledger import Ledger
from fedsbc.message import NEEDS_MODEL, TrainRequest
from fedsbc.network import Network, client_seconds, round_seconds

from .aggregate import Aggregation, BlockSum
from .courier import Courier
from .exchange import Closed, Exchange, Outgoing, SharesWeights
from .intake import Accepted, accept, bits_or_none
from .journal import Journal
from .members import Member, draw_cohort
from .round_result import Asked, RoundResult
from .server import Server


@dataclass
class Rounds:
    """Plays the rounds of a run.

    Attributes:
        config: the experiment.
        server: the model and its history.
        members: the clients by id.
        exchange: the way to them.
        ledger: one row per message.
        journal: told of failures and payloads.
        run_id: 16 hex digits.
        network: links and devices of the clients, for simulated time.
        incarnation: counts the server's starts within the run, from 1.
    """

    config: Config
    server: Server
    members: dict[int, Member]
    exchange: Exchange
    ledger: Ledger
    journal: Journal
    run_id: str
    network: Network
    incarnation: int = 1

    def __post_init__(self) -> None:
        """Raise DataError if the trace of availability cannot be used."""
        grid, config = self.exchange.grid, self.config
        shared = grid if config.transport == "shared" and isinstance(grid, SharesWeights) else None
        self.courier = Courier(self.server, self.ledger, self.run_id, self.incarnation, shared)
        self.exchange.on_late = self._take_late
        self._clients_of = {m.node_id: m.client_id for m in self.members.values()}
        self._availability = availability.build(
            config.availability, config.seed, config.clients.count
        )

    def play(self, round: int) -> RoundResult:
        """Play one round and close it, whatever happens to its clients.

        Raises:
            RunError: a client failed and the config says `on_client_error: fail`.
        """
        config = self.config
        present = self._availability.present(round)
        cohort = draw_cohort(present, config.cohort_size, config.seed, round)
        result = RoundResult(round)
        updates = BlockSum(cohort, self.server.layout, config.aggregation)
        buffers = BlockSum(cohort, self.server.sent_buffers, _for_buffers(config.aggregation))

        def settle(asked: Asked, accepted: Accepted | None) -> None:
            client_id, samples = asked.member.client_id, asked.member.num_samples
            asked.reply = accepted.reply if accepted else None
            updates.settle(client_id, accepted.update if accepted else None, samples)
            buffers.settle(client_id, accepted.buffers if accepted else None, samples)

        def on_reply(request: Message, reply: Message) -> None:
            asked = result.asked[request.metadata.dst_node_id]
            settle(asked, self._take(result, asked, reply))

        dropouts = self._availability.dropouts(round)
        requests = self._requests(result, cohort, dropouts)
        count = sum(client_id not in dropouts for client_id in cohort)
        silent = self.exchange.run(Outgoing(requests, count), on_reply)
        for message, reason in silent:
            asked = result.asked[message.metadata.dst_node_id]
            self._unheard(result, asked, reason)
            settle(asked, None)
        for asked in result.asked.values():
            if asked.dropped_out:
                self._unheard(result, asked, None)
                settle(asked, None)
        self._close(result, updates.result(), buffers.result())
        return result

    def _requests(
        self, result: RoundResult, cohort: list[int], dropouts: Container[int]
    ) -> Iterator[Message]:
        """Make the requests to a cohort, by ascending client id; those of dropouts get lost."""
        for client_id in cohort:
            parcel = self.courier.parcel(TrainRequest, self.members[client_id], result.round)
            asked = Asked(parcel, dropped_out=client_id in dropouts)
            result.asked[parcel.member.node_id] = asked
            if not asked.dropped_out:
                yield parcel.message

    def _take(self, result: RoundResult, asked: Asked, reply: Message) -> Accepted | None:
        """Check one reply; what cannot be used is a failure, and bad updates are discarded."""
        member, server = asked.member, self.server
        if reply.has_error():
            if reply.error.code == NEEDS_MODEL:
                member.base_version = -1
            self._failed(result, member, reply.error.reason or f"Flower error {reply.error.code}")
            return None
        try:
            accepted = accept(
                reply,
                asked.parcel.request,
                member.num_samples,
                server.layout,
                server.sent_buffers,
                max_norm=self.config.failures.max_update_norm,
            )
        except (WireError, UpdateError) as error:
            member.discarded_round = result.round
            bits = bits_or_none(reply, server.layout)
            self.courier.count_reply("train", result.round, member.client_id, reply, bits)
            self._failed(result, member, f"update refused: {error}")
            return None
        self.courier.count_reply("train", result.round, member.client_id, reply, accepted.bits)
        if self._is_late(result, asked, accepted):
            # A straggler of the simulated network: as a late reply, read but never used.
            result.failures += 1
            return None
        member.base_version = asked.parcel.request.version
        self.journal.payload(result.round, f"up-{member.client_id:05d}", accepted.payload)
        return accepted

    def _is_late(self, result: RoundResult, asked: Asked, accepted: Accepted) -> bool:
        """Note the simulated seconds of a reply and say whether they pass the deadline."""
        client_id = asked.member.client_id
        result.seconds[client_id] = client_seconds(
            self.network.links[client_id],
            accepted.bits.payload_bits,
            asked.parcel.downlink.bits.payload_bits,
            accepted.reply.num_steps,
            self.server.layout.size,
        )
        deadline_s = self.network.deadline_s
        return deadline_s is not None and result.seconds[client_id] > deadline_s

    def simulated_s(self, result: RoundResult) -> float:
        """Return the simulated seconds of a round; 0.0 without a network."""
        return round_seconds(result.seconds, self.network.deadline_s)

    def _unheard(self, result: RoundResult, asked: Asked, reason: str | None) -> None:
        """Note a client that did not answer; without a reason it dropped out as it was drawn to."""
        if self.network.deadline_s is not None:
            result.seconds[asked.member.client_id] = math.inf
        if reason is None:
            result.failures += 1
        else:
            self._failed(result, asked.member, reason)

    def _failed(self, result: RoundResult, member: Member, reason: str) -> None:
        result.failures += 1
        self.journal.failure(result.round, member.client_id, reason)
        if self.config.failures.on_client_error == "fail":
            last_line = reason.strip().splitlines()[-1]
            raise RunError(f"round {result.round}, client {member.client_id}: {last_line}")

    def _take_late(self, closed: Closed, reply: Message) -> None:
        """Count a late or second reply: it travelled, but it is never used."""
        if reply.has_content() and closed.node_id in self._clients_of:
            bits = bits_or_none(reply, self.server.layout)
            self.courier.count_late(closed, self._clients_of[closed.node_id], reply, bits)

    def _close(self, result: RoundResult, total: Vector | None, buffers: Vector | None) -> None:
        """Apply the aggregate, or close the round without a change and say why."""
        reason = self._why_not(result, total)
        if reason is None:
            try:
                payload = self.server.close_round(result.round, total, buffers)
                self.journal.payload(result.round, "down", payload)
            except (RunError, UpdateError) as error:
                reason = str(error)
        if reason is not None:
            result.is_aborted = True
            self.server.close_round(result.round, None, None)
            self.journal.failure(
                result.round, None, f"round aborted, the model is unchanged: {reason}"
            )
            return
        for reply in result.used:
            self.members[reply.client_id].used_round = result.round

    def _why_not(self, result: RoundResult, total: Vector | None) -> str | None:
        """Say why an aggregate must not be applied; None if it may be."""
        if not result.asked:
            return "no client is available"
        usable = sum(asked.reply is not None for asked in result.asked.values())
        if usable < self.config.failures.min_replies:
            return f"{usable} usable replies, min_replies is {self.config.failures.min_replies}"
        return None if total is not None and is_finite(total) else "the aggregate is not finite"


def _for_buffers(aggregation: Aggregation) -> Aggregation:
    """Return how float buffers are averaged: a vote on statistics has no meaning."""
    return "mean" if aggregation == "vote" else aggregation
