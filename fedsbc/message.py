"""The messages between server and client: the one door from the core to Flower.

Every message is a `RecordDict` with one `ConfigRecord` (`fedsbc`: the fields below) and, where it
carries an update or a model, one `ArrayRecord` (`arrays`) whose values are `fedsbc.v1` payloads.
A payload travels as an `Array` of exactly its bytes: one Array per payload, never one per tensor.

The exchange (see docs/protocol.md):

    Hello -> HelloReply              who is who, what state is found            (Flower: query)
    TrainRequest -> TrainReply       weights or payloads down, one update up     (Flower: train)
    EvaluateRequest -> EvaluateReply a client's own test of the current model    (Flower: evaluate)
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedsbc.errors import WireError

PROTOCOL = 1
"""Number of this message format; another number is refused by both sides."""

STYPE = "fedsbc.v1"
"""Serialisation type that Flower records carry for our payloads."""

FIELDS, ARRAYS = "fedsbc", "arrays"

CLIENT_ERROR = 1000
"""Code of an error reply whose reason is a traceback of ours."""

NEEDS_FULL_MODEL = 1002
"""Code of an error reply of a client whose base is unknown, lost, newer or another one."""

Content = Literal["shared", "full", "payloads"]
"""How the server's weights reach a client: by shared memory, whole, or as missed payloads."""

Verdict = Literal["used", "unused", "discard"]
"""What became of an update: applied, to be put back into the residual, or thrown away."""


@dataclass(frozen=True)
class Hello:
    """Asks a node who it is.

    Attributes:
        run_id: 16 hex digits, drawn by the server; state of another run is never used.
        incarnation: counts the server's starts within the run, from 1.
        experiment: hash of the resolved config, so that both sides train the same thing.
    """

    KIND: ClassVar[str] = "hello"
    run_id: str
    incarnation: int
    experiment: str


@dataclass(frozen=True)
class HelloReply:
    """Says who a node is and what state it found.

    Attributes:
        run_id: as asked.
        client_id: the data partition that the node holds.
        num_samples: number of its training samples.
        layout: hash of the model's layout, 16 hex digits.
        base_version: version of the server model that it still holds, -1 for none.
    """

    KIND: ClassVar[str] = "hello-reply"
    run_id: str
    client_id: int
    num_samples: int
    layout: str
    base_version: int


@dataclass(frozen=True)
class TrainRequest:
    """Asks a client to come to `version`, train, and send its update.

    Attributes:
        run_id: 16 hex digits.
        incarnation: counts the server's starts within the run, from 1.
        round: the round that is asked for, from 1.
        client_id: whom the server takes this node for.
        version: version of the server model to start from.
        model: first 16 hex digits of the sha256 of that model.
        content: how the weights travel.
        base_version: the payloads are those of base_version + 1 .. version; -1 otherwise.
        used_round: last round whose update from this client was applied, 0 for none.
        discarded_round: last round whose update was refused as bad, 0 for none. Of an older
            update that is neither, the client learns here that it was not used.
    """

    KIND: ClassVar[str] = "train"
    run_id: str
    incarnation: int
    round: int
    client_id: int
    version: int
    model: str
    content: str
    base_version: int
    used_round: int
    discarded_round: int

    def verdict_on(self, round: int) -> Verdict:
        """Return what became of the update that this client sent in an earlier round."""
        if round == self.used_round:
            return "used"
        return "discard" if round == self.discarded_round else "unused"


@dataclass(frozen=True)
class TrainReply:
    """Carries one update.

    Attributes:
        run_id: as asked.
        round: as asked.
        client_id: the sender.
        base_version: version of the model that the update is relative to.
        num_samples: number of the client's training samples (not of batches).
        num_steps: SGD steps taken.
        train_loss: mean loss over those steps.
    """

    KIND: ClassVar[str] = "train-reply"
    run_id: str
    round: int
    client_id: int
    base_version: int
    num_samples: int
    num_steps: int
    train_loss: float


@dataclass(frozen=True)
class EvaluateRequest:
    """Asks a client to test the model of `version`; moves no base and acknowledges nothing.

    Attributes:
        run_id: 16 hex digits.
        round: the round after which the model is tested.
        client_id: whom the server takes this node for.
        version: version of the server model to test.
        content: how the weights travel.
        base_version: the payloads are those of base_version + 1 .. version; -1 otherwise.
    """

    KIND: ClassVar[str] = "evaluate"
    run_id: str
    round: int
    client_id: int
    version: int
    content: str
    base_version: int


@dataclass(frozen=True)
class EvaluateReply:
    """A client's own test of the model.

    Attributes:
        run_id: as asked.
        round: as asked.
        client_id: the sender.
        num_samples: number of samples that were tested.
        accuracy: fraction that was right.
        loss: mean loss.
    """

    KIND: ClassVar[str] = "evaluate-reply"
    run_id: str
    round: int
    client_id: int
    num_samples: int
    accuracy: float
    loss: float


AnyMessage = Hello | HelloReply | TrainRequest | TrainReply | EvaluateRequest | EvaluateReply
M = TypeVar("M", Hello, HelloReply, TrainRequest, TrainReply, EvaluateRequest, EvaluateReply)


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


def predicted_bytes(message: AnyMessage, array_bytes: Mapping[str, int]) -> int:
    """Return what `content_bytes` would give if arrays of these lengths travelled along.

    For simulation, where weights reach the clients through shared memory and the ledger counts
    the messages that would have been sent.
    """
    total = len(FIELDS) + _record(message).count_bytes()
    if array_bytes:
        total += len(ARRAYS) + sum(len(name) + size for name, size in array_bytes.items())
    return total
