"""A request with the weights that it needs: really inside, or in shared memory and counted."""

from typing import TypeVar

from flwr.app import RecordDict

from fedsbc.message import (
    EvaluateRequest,
    TrainRequest,
    content_bytes,
    pack,
    predicted_bytes,
    set_field,
)

from .server import Downlink, Server

Request = TypeVar("Request", TrainRequest, EvaluateRequest)


class Sender:
    """Makes the contents of one round's requests.

    Args:
        server: where the payloads are.
        is_shared: whether clients read the weights from shared memory; the ledger then counts
            the message that would have travelled.
    """

    def __init__(self, server: Server, *, is_shared: bool) -> None:
        self._server = server
        self._is_shared = is_shared
        self._payloads: dict[str, bytes] = {}

    def content(self, request: Request, downlink: Downlink) -> tuple[RecordDict, int]:
        """Return the content to send, and the bytes that count for the ledger."""
        if self._is_shared:
            content = pack(request)
            num_bytes = predicted_bytes(content, downlink.payload_bytes)
            set_field(content, "content", "shared")
            return content, num_bytes
        content = pack(request, {name: self._payload(name) for name in downlink.payload_bytes})
        return content, content_bytes(content)

    def _payload(self, name: str) -> bytes:
        """Return a payload, encoded once a round: clients that get the same share its memory."""
        if name not in self._payloads:
            self._payloads[name] = self._server.payload(name)
        return self._payloads[name]
