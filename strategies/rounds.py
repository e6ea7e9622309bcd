"""One round: downlink, training, intake, aggregation; what it changes and what it costs."""

import math
from dataclasses import dataclass, field

from flwr.app import Message, MessageType

from fedsbc.arrays import Vector
from fedsbc.config import Config
from fedsbc.errors import RunError, UpdateError, WireError
from fedsbc.layout import Layout, is_finite
from fedsbc.ledger import Ledger
from fedsbc.ledger_row import Direction
from fedsbc.message import NEEDS_FULL_MODEL, TrainReply, TrainRequest, content_bytes, unpack
from fedsbc.network import Network, client_seconds, round_seconds
from fedsbc.payload import PayloadBits

from .aggregate import Aggregation, BlockSum
from .downlink import Sender
from .exchange import Exchange, SharesWeights
from .intake import Accepted, accept, bits_or_none
from .journal import Journal
from .members import Member, draw_cohort
from .rows import ledger_row
from .server import Downlink, Server


@dataclass
class Asked:
    """One client of the cohort: what it was sent, and what came of it."""

    member: Member
    request: TrainRequest
    downlink: Downlink
    accepted: Accepted | None = None


@dataclass
class RoundResult:
    """What a round came to.

    Attributes:
        round: its number.
        asked: the cohort by node id.
        failures: clients asked whose update was not used.
        is_aborted: whether the model stayed as it was.
        seconds: simulated seconds of the clients that answered.
    """

    round: int
    asked: dict[int, Asked]
    failures: int = 0
    is_aborted: bool = False
    seconds: dict[int, float] = field(default_factory=dict)

    @property
    def used(self) -> list[Asked]:
        """The clients whose update was applied."""
        return [] if self.is_aborted else [a for a in self.asked.values() if a.accepted]

    @property
    def train_loss(self) -> float | None:
        """Mean local training loss over those clients; None without a finite one."""
        losses = [a.accepted.reply.train_loss for a in self.used if a.accepted]
        finite = [loss for loss in losses if math.isfinite(loss)]
        return sum(finite) / len(finite) if finite else None


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
        sent_buffers: layout of the float buffers that clients send; empty where they stay local.
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
    sent_buffers: Layout = field(default_factory=lambda: Layout(()))

    def __post_init__(self) -> None:
        grid = self.exchange.grid
        is_shared = self.config.transport == "shared" and isinstance(grid, SharesWeights)
        self._shared: SharesWeights | None = grid if is_shared else None  # type: ignore[assignment]

    def play(self, round: int) -> RoundResult:
        """Play one round and close it, whatever happens to its clients.

        Raises:
            RunError: a client failed and the config says `on_client_error: fail`.
        """
        cohort = draw_cohort(list(self.members), self.config.cohort_size, self.config.seed, round)
        if self._shared is not None:
            self._shared.publish(self.server.version, self.server.weights, self.server.buffers)
        result = RoundResult(round, {})
        messages = self._ask(round, cohort, result)
        updates = BlockSum(cohort, self.server.layout, self.config.aggregation)
        buffers = BlockSum(cohort, self.sent_buffers, _for_buffers(self.config.aggregation))

        def settle(asked: Asked, accepted: Accepted | None) -> None:
            client_id, samples = asked.member.client_id, asked.member.num_samples
            asked.accepted = accepted
            updates.settle(client_id, accepted and accepted.update, samples)
            buffers.settle(client_id, accepted and accepted.buffers, samples)

        def on_reply(request: Message, reply: Message) -> None:
            asked = result.asked[request.metadata.dst_node_id]
            settle(asked, self._take(result, asked, reply))

        silent = self.exchange.run(messages, on_reply, self._take_late)
        for message, reason in silent:
            asked = result.asked[message.metadata.dst_node_id]
            self._failed(result, asked, reason)
            settle(asked, None)
        self._close(result, updates.result(), buffers.result())
        return result

    def _ask(self, round: int, cohort: list[int], result: RoundResult) -> list[Message]:
        """Return the requests to a cohort, each counted in the ledger as it would travel."""
        sender = Sender(self.server, is_shared=self._shared is not None)
        model = self.server.model_hash()[:16]
        messages = []
        for client_id in cohort:
            member = self.members[client_id]
            downlink = self.server.downlink(member.base_version)
            request = TrainRequest(
                run_id=self.run_id,
                incarnation=self.incarnation,
                round=round,
                client_id=client_id,
                version=self.server.version,
                model=model,
                content=downlink.content,
                base_version=downlink.base_version,
                used_round=member.used_round,
                discarded_round=member.discarded_round,
            )
            content, num_bytes = sender.content(request, downlink)
            self._add_row(round, client_id, "down", downlink.bits, num_bytes)
            result.asked[member.node_id] = Asked(member, request, downlink)
            messages.append(
                Message(content, member.node_id, MessageType.TRAIN, group_id=str(round))
            )
        return messages

    def _take(self, result: RoundResult, asked: Asked, reply: Message) -> Accepted | None:
        """Check one reply; what cannot be used is a failure, and bad updates are discarded."""
        if reply.has_error():
            reason = reply.error.reason or f"Flower error {reply.error.code}"
            if reply.error.code == NEEDS_FULL_MODEL:
                asked.member.base_version = -1
            return self._failed(result, asked, reason)
        member, server = asked.member, self.server
        try:
            accepted = accept(
                reply, asked.request, member.num_samples, server.layout, self.sent_buffers
            )
        except (WireError, UpdateError) as error:
            member.discarded_round = result.round
            bits = bits_or_none(reply, server.layout)
            self._add_row(result.round, member.client_id, "up", bits, content_bytes(reply.content))
            return self._failed(result, asked, f"update refused: {error}")
        self._add_row(
            result.round, member.client_id, "up", accepted.bits, content_bytes(reply.content)
        )
        if self._is_late(result, asked, accepted):
            # A straggler of the simulated network: as a late reply, read but never used.
            result.failures += 1
            return None
        member.base_version = asked.request.version
        self.journal.payload(result.round, f"up-{member.client_id:05d}", accepted.payload)
        return accepted

    def _is_late(self, result: RoundResult, asked: Asked, accepted: Accepted) -> bool:
        """Note the simulated seconds of a reply and say whether they pass the deadline."""
        client_id = asked.member.client_id
        result.seconds[client_id] = client_seconds(
            self.network.links[client_id],
            accepted.bits.payload_bits,
            asked.downlink.bits.payload_bits,
            accepted.reply.num_steps,
            self.server.layout.size,
        )
        deadline_s = self.network.deadline_s
        return deadline_s is not None and result.seconds[client_id] > deadline_s

    def simulated_s(self, result: RoundResult) -> float:
        """Return the simulated seconds of a round; 0.0 without a network."""
        return round_seconds(result.seconds, self.network.deadline_s)

    def _failed(self, result: RoundResult, asked: Asked, reason: str) -> None:
        result.failures += 1
        self.journal.failure(result.round, asked.member.client_id, reason)
        if self.config.failures.on_client_error == "fail":
            last_line = reason.strip().splitlines()[-1]
            raise RunError(f"round {result.round}, client {asked.member.client_id}: {last_line}")

    def _take_late(self, reply: Message) -> None:
        """Count a reply to a closed round: it travelled, but it is never used."""
        if reply.has_error():
            return
        try:
            fields, _ = unpack(reply.content, TrainReply)
        except WireError:
            return
        bits = bits_or_none(reply, self.server.layout)
        size = content_bytes(reply.content)
        self._add_row(fields.round, fields.client_id, "up", bits, size)

    def _close(self, result: RoundResult, total: Vector | None, buffers: Vector | None) -> None:
        """Apply the aggregate, or close the round without a change and say why."""
        usable = sum(asked.accepted is not None for asked in result.asked.values())
        reason = None
        if usable < self.config.failures.min_replies:
            reason = f"{usable} usable replies, min_replies is {self.config.failures.min_replies}"
        elif total is None or not is_finite(total):
            reason = "the aggregate is not finite"
        else:
            try:
                self.server.close_round(result.round, total, buffers)
            except RunError as error:
                reason = str(error)
        if reason is not None:
            result.is_aborted = True
            self.server.close_round(result.round, None, None)
            self.journal.failure(
                result.round, None, f"round aborted, the model is unchanged: {reason}"
            )
            return
        for asked in result.used:
            asked.member.used_round = result.round

    def _add_row(
        self, round: int, client_id: int, direction: Direction, bits: PayloadBits, num_bytes: int
    ) -> None:
        self.ledger.add(
            ledger_row(
                round=round,
                client_id=client_id,
                direction=direction,
                kind="train",
                bits=bits,
                envelope_bytes=num_bytes,
                num_params=self.server.layout.size,
            )
        )


def _for_buffers(aggregation: Aggregation) -> Aggregation:
    """Return how float buffers are averaged: a vote on statistics has no meaning."""
    return "mean" if aggregation == "vote" else aggregation
