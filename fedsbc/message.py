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
from typing import Any, TypeVar

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
    "set_field",
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


def _record(message: AnyMessage) -> ConfigRecord:
    values: dict[str, Any] = {"protocol": PROTOCOL, "kind": message.KIND}
    values.update({field.name: getattr(message, field.name) for field in fields(message)})
    return ConfigRecord(values)


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
    record = content.config_records.get(FIELDS)
    if record is None:
        raise WireError(f"message has no record {FIELDS!r}; expected a {kind.KIND} message")
    if record.get("protocol") != PROTOCOL:
        raise WireError(f"message format {record.get('protocol')!r}; this side speaks {PROTOCOL}")
    if record.get("kind") != kind.KIND:
        raise WireError(f"message is {record.get('kind')!r}; expected {kind.KIND!r}")
    values = {field.name: _value(record, field.name, field.type) for field in fields(kind)}
    return kind(**values), _payloads(content)


def _value(record: ConfigRecord, name: str, kind: Any) -> Any:
    value = record.get(name)
    if type(value) is not kind:
        raise WireError(f"message field {name}: {value!r} is not of type {kind.__name__}")
    return value


def _payloads(content: RecordDict) -> dict[str, bytes]:
    arrays: Mapping[str, Array] = content.array_records.get(ARRAYS, ArrayRecord())
    for name, array in arrays.items():
        if array.stype != STYPE:
            raise WireError(f"array {name!r} is {array.stype!r}; expected {STYPE!r}")
    return {name: array.data for name, array in arrays.items()}


def content_bytes(content: RecordDict) -> int:
    """Return the bytes of a message's records and their names, as Flower counts them."""
    return sum(len(name) + record.count_bytes() for name, record in content.items())


def set_field(content: RecordDict, name: str, value: str) -> None:
    """Change a text field of a packed message."""
    content.config_records[FIELDS][name] = value


def predicted_bytes(content: RecordDict, array_bytes: Mapping[str, int]) -> int:
    """Return what `content_bytes` would give if arrays of these lengths travelled along.

    For simulation, where weights reach the clients through shared memory and the ledger counts
    the messages that would have been sent.
    """
    total = content_bytes(content)
    if array_bytes:
        total += len(ARRAYS) + sum(len(name) + size for name, size in array_bytes.items())
    return total
