"""The messages between server and client: the one door from the core to Flower.

Every message is a `RecordDict` with one `ConfigRecord` (`fedsbc`: its fields, those of
`fedsbc.protocol`) and, where it carries an update or a model, one `ArrayRecord` (`arrays`) whose
values are `fedsbc.v1` payloads.
A payload travels as an `Array` of exactly its bytes: one Array per payload, never one per tensor.

The exchange (see docs/protocol.md):

    Hello -> HelloReply              who is who, what state is found          (Flower: query)
    TrainRequest -> TrainReply       weights or payloads down, one update up  (Flower: train)
    EvaluateRequest -> EvaluateReply a client's own test of the current model (Flower: evaluate)
    SyncRequest -> SyncReply         the run's last weights, nothing to train (Flower: query.sync)
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, get_args

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedsbc.errors import WireError
from fedsbc.protocol import (
    CLIENT_ERROR,
    MAX_CHAIN,
    NEEDS_MODEL,
    AnyMessage,
    Content,
    EvaluateReply,
    EvaluateRequest,
    Hello,
    HelloReply,
    ModelRequest,
    SettlingRequest,
    SyncReply,
    SyncRequest,
    TrainReply,
    TrainRequest,
    Verdict,
)

__all__ = [
    "ARRAYS",
    "CLIENT_ERROR",
    "FIELDS",
    "MAX_CHAIN",
    "NEEDS_MODEL",
    "PROTOCOL",
    "STYPE",
    "SYNC",
    "AnyMessage",
    "Content",
    "EvaluateReply",
    "EvaluateRequest",
    "Hello",
    "HelloReply",
    "ModelRequest",
    "SettlingRequest",
    "SyncReply",
    "SyncRequest",
    "TrainReply",
    "TrainRequest",
    "Verdict",
    "content_bytes",
    "pack",
    "predicted_bytes",
    "unpack",
]

PROTOCOL = 1
"""Number of this message format; another number is refused by both sides."""

STYPE = "fedsbc.v1"
"""Serialisation type that Flower records carry for our payloads."""

FIELDS, ARRAYS = "fedsbc", "arrays"

SYNC = "query.sync"
"""Flower's type of the messages of the final synchronisation."""

M = TypeVar("M", bound=AnyMessage)


_FIELDS: dict[Any, tuple[tuple[str, Any], ...]] = {
    kind: tuple((field.name, field.type) for field in fields(kind)) for kind in get_args(AnyMessage)
}
"""Names and types of the fields of each kind of message."""

_last: dict[type[AnyMessage], ConfigRecord] = {}
"""The last record of each kind of message."""


def _record(message: AnyMessage) -> ConfigRecord:
    """Return the fields as a record of Flower's, which checks each value that is set.

    Most fields are those of the last message of the kind, of which they are copied.
    """
    kind = type(message)
    last = _last.get(kind) or ConfigRecord({"protocol": PROTOCOL, "kind": kind.KIND})
    record, known = last.copy(), dict(last.items())
    for name, expected in _FIELDS[kind]:
        value = getattr(message, name)
        # 0.0 is -0.0 and 1 is True; those are set anew.
        if expected is float or type(value) is not expected or known.get(name) != value:
            record[name] = value
    _last[kind] = record.copy()
    return record


def pack(message: AnyMessage, arrays: Mapping[str, bytes] | None = None) -> RecordDict:
    """Return the content of a Flower message.

    Args:
        message: the fields.
        arrays: payloads by name, each sent as exactly its bytes.
    """
    content = RecordDict({FIELDS: _record(message)})
    if arrays:
        content[ARRAYS] = ArrayRecord(
            {
                name: Array(dtype="uint8", shape=(len(data),), stype=STYPE, data=data)
                for name, data in arrays.items()
            }
        )
    return content


def unpack(content: RecordDict, kind: type[M]) -> tuple[M, dict[str, bytes]]:
    """Return the fields and the payloads of a message of the kind that is expected.

    Raises:
        WireError: the content is not such a message.
    """
    record = content.get(FIELDS)
    if not isinstance(record, ConfigRecord):
        raise WireError(f"message has no record {FIELDS!r}; expected a {kind.KIND} message")
    values: dict[str, Any] = dict(record.items())
    if values.get("protocol") != PROTOCOL:
        raise WireError(f"message format {values.get('protocol')!r}; this side speaks {PROTOCOL}")
    if values.get("kind") != kind.KIND:
        raise WireError(f"message is {values.get('kind')!r}; expected {kind.KIND!r}")
    for name, expected in _FIELDS[kind]:
        if type(value := values.get(name)) is not expected:
            raise WireError(f"message field {name}: {value!r} is not of type {expected.__name__}")
    return kind(**{name: values[name] for name, _ in _FIELDS[kind]}), _payloads(content)


def _payloads(content: RecordDict) -> dict[str, bytes]:
    record = content.get(ARRAYS)
    arrays: Mapping[str, Array] = record if isinstance(record, ArrayRecord) else {}
    for name, array in arrays.items():
        if array.stype != STYPE:
            raise WireError(f"array {name!r} is {array.stype!r}; expected {STYPE!r}")
    return {name: array.data for name, array in arrays.items()}


def content_bytes(content: RecordDict) -> int:
    """Return the bytes of a message's records and their names, as Flower counts them."""
    return sum(len(name) + record.count_bytes() for name, record in content.items())


def predicted_bytes(content: RecordDict, array_bytes: Mapping[str, int]) -> int:
    """Return what `content_bytes` would give if arrays of these lengths travelled along.

    For simulation, where weights reach the clients through shared memory and the ledger counts
    the messages that would have been sent.
    """
    total = content_bytes(content)
    if array_bytes:
        total += len(ARRAYS) + sum(len(name) + size for name, size in array_bytes.items())
    return total
