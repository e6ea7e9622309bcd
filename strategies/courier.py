"""Requests with the weights that they need, and the ledger row of every message that travels.

Weights are really inside a request, or in shared memory and counted as if they were.
"""

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from flwr.app import Message, MessageType, RecordDict

from fedsbc.ledger import Ledger
from fedsbc.ledger_row import Direction
from fedsbc.message import (
    SYNC,
    EvaluateRequest,
    SettlingRequest,
    SyncRequest,
    TrainRequest,
    content_bytes,
    pack,
    predicted_bytes,
)
from fedsbc.payload import PayloadBits

from .exchange import Closed, SharesWeights
from .members import Member
from .rows import ledger_row
from .server import NO_BITS, Downlink, Server

Request = TypeVar("Request", TrainRequest, EvaluateRequest, SyncRequest)

MESSAGE_TYPES: dict[str, str] = {
    TrainRequest.KIND: MessageType.TRAIN,
    EvaluateRequest.KIND: MessageType.EVALUATE,
    SyncRequest.KIND: SYNC,
}
"""Kind of request, which is that of its ledger rows too -> Flower's type of the message."""


@dataclass(frozen=True)
class Parcel(Generic[Request]):
    """A request on its way.

    Attributes:
        member: whom it goes to.
        request: its fields.
        downlink: the weights with it.
        message: what is handed to the Grid.
    """

    member: Member
    request: Request
    downlink: Downlink
    message: Message


class Courier:
    """Makes the requests of a run and keeps its ledger.

    Args:
        server: the model and its payloads.
        ledger: gets a row for each message.
        run_id: 16 hex digits.
        incarnation: counts the server's starts within the run, from 1.
        shared: where clients read the weights; None: they travel.
    """

    def __init__(
        self,
        server: Server,
        ledger: Ledger,
        run_id: str,
        incarnation: int,
        shared: SharesWeights | None,
    ) -> None:
        self._server = server
        self._ledger = ledger
        self._run_id, self._incarnation = run_id, incarnation
        self._shared = shared
        self._version = -1
        self._model = ""
        self._payloads: dict[str, bytes] = {}
        self._request_bytes: dict[tuple[Any, ...], int] = {}

    def parcel(self, kind: type[Request], member: Member, round: int) -> Parcel[Request]:
        """Return a request of that kind for the current version, counted as it would travel."""
        self._come_to(self._server.version)
        downlink = self._server.downlink(member.base_version)
        verdicts: dict[str, Any] = {}
        if issubclass(kind, SettlingRequest):
            verdicts["used_round"] = member.used_round
            verdicts["discarded_round"] = member.discarded_round
        request = kind(
            run_id=self._run_id,
            incarnation=self._incarnation,
            round=round,
            client_id=member.client_id,
            version=self._version,
            model=self._model,
            content=downlink.content,
            base_version=downlink.base_version,
            **verdicts,
        )
        content, num_bytes = self._content(request, downlink)
        self._add_row(request.KIND, round, member.client_id, "down", downlink.bits, num_bytes)
        kind_of_message = MESSAGE_TYPES[request.KIND]
        message = Message(content, member.node_id, kind_of_message, group_id=str(round))
        return Parcel(member, request, downlink, message)

    def _come_to(self, version: int) -> None:
        """Hash, and publish where weights are shared, each version once."""
        if version == self._version:
            return
        self._version, self._model = version, self._server.sent_hash()
        self._payloads.clear()
        self._request_bytes.clear()
        if self._shared is not None:
            self._shared.publish(version, self._server.weights, self._server.buffers)

    def _content(self, request: Request, downlink: Downlink) -> tuple[RecordDict, int]:
        """Return the content to send, and the bytes that count for the ledger."""
        if self._shared is not None:
            return pack(replace(request, content="shared")), self._bytes_of(request, downlink)
        content = pack(request, {name: self._payload(name) for name in downlink.payload_bytes})
        return content, content_bytes(content)

    def _bytes_of(self, request: Request, downlink: Downlink) -> int:
        """Return the bytes that a request would have; all but its payloads are of fixed length."""
        key = request.KIND, downlink.content, *downlink.payload_bytes.items()
        if key not in self._request_bytes:
            self._request_bytes[key] = predicted_bytes(pack(request), downlink.payload_bytes)
        return self._request_bytes[key]

    def _payload(self, name: str) -> bytes:
        """Return a payload, encoded once a version: clients that get the same share its memory."""
        if name not in self._payloads:
            self._payloads[name] = self._server.payload(name)
        return self._payloads[name]

    def count_reply(
        self, kind: str, round: int, client_id: int, reply: Message, bits: PayloadBits = NO_BITS
    ) -> None:
        """Add the row of a reply that was read."""
        self._add_row(kind, round, client_id, "up", bits, content_bytes(reply.content))

    def count_late(
        self, closed: Closed, client_id: int, reply: Message, bits: PayloadBits = NO_BITS
    ) -> None:
        """Add the row of a reply to a request that nobody waited for any more."""
        for kind, message_type in MESSAGE_TYPES.items():
            if message_type == closed.message_type:
                self.count_reply(kind, int(closed.group_id), client_id, reply, bits)

    def _add_row(
        self,
        kind: str,
        round: int,
        client_id: int,
        direction: Direction,
        bits: PayloadBits,
        num_bytes: int,
    ) -> None:
        self._ledger.add(
            ledger_row(
                round=round,
                client_id=client_id,
                direction=direction,
                kind=kind,  # type: ignore[arg-type]  # a request's kind, which the row checks
                bits=bits,
                envelope_bytes=num_bytes,
                num_params=self._server.layout.size,
            )
        )
