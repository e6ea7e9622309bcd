"""What server and client say to each other: the fields of every message, without Flower.

`fedsbc.message` makes Flower messages of them; docs/protocol.md says when each is sent.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

MAX_CHAIN = 10_000
"""Payloads that travel in one message at most; a client that missed more gets the full model."""

CLIENT_ERROR = 1000
"""Code of an error reply whose reason is a traceback of ours."""

NEEDS_MODEL = 1002
"""The same, from a client that the missed payloads do not help: it is sent the full model next."""

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
class ModelRequest:
    """What every request has that brings a client to a version of the server's model.

    Attributes:
        run_id: 16 hex digits.
        incarnation: counts the server's starts within the run, from 1.
        round: the round that is asked for, from 1.
        client_id: whom the server takes this node for.
        version: version of the server model to come to.
        model: first 16 hex digits of the sha256 of that model: the weights, and the float buffers
            where they are averaged.
        content: how the weights travel.
        base_version: the payloads are those of base_version + 1 .. version; -1 otherwise.
    """

    KIND: ClassVar[str]
    run_id: str
    incarnation: int
    round: int
    client_id: int
    version: int
    model: str
    content: str
    base_version: int


@dataclass(frozen=True)
class SettlingRequest(ModelRequest):
    """A request that also says what became of the client's last update.

    Attributes:
        used_round: last round whose update from this client was applied, 0 for none.
        discarded_round: last round whose update was refused as bad, 0 for none. Of an older
            update that is neither, the client learns here that it was not used.
    """

    used_round: int
    discarded_round: int

    def verdict_on(self, round: int) -> Verdict:
        """Return what became of the update that this client sent in an earlier round."""
        if round == self.used_round:
            return "used"
        return "discard" if round == self.discarded_round else "unused"


@dataclass(frozen=True)
class TrainRequest(SettlingRequest):
    """Asks a client to come to `version`, train, and send its update."""

    KIND: ClassVar[str] = "train"


@dataclass(frozen=True)
class EvaluateRequest(ModelRequest):
    """Asks a client to test the model of `version`; moves no base and acknowledges nothing.

    Its `round` is the one after which the model is tested.
    """

    KIND: ClassVar[str] = "evaluate"


@dataclass(frozen=True)
class SyncRequest(SettlingRequest):
    """Asks a client to come to the last version, settle its last update, and train nothing.

    Its `round` is one more than the last round of the run.
    """

    KIND: ClassVar[str] = "sync"


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
        forgotten: sum of the absolute values that the client dropped from its residual on purpose
            (`residual.absent`); 0.0 where it keeps everything.
    """

    KIND: ClassVar[str] = "train-reply"
    run_id: str
    round: int
    client_id: int
    base_version: int
    num_samples: int
    num_steps: int
    train_loss: float
    forgotten: float


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


@dataclass(frozen=True)
class SyncReply:
    """Says that a client holds the last model.

    Attributes:
        run_id: as asked.
        round: as asked.
        client_id: the sender.
        model: hash of the model that it holds, as in the request.
    """

    KIND: ClassVar[str] = "sync-reply"
    run_id: str
    round: int
    client_id: int
    model: str


AnyMessage = (
    Hello
    | HelloReply
    | TrainRequest
    | TrainReply
    | EvaluateRequest
    | EvaluateReply
    | SyncRequest
    | SyncReply
)
"""Every kind of message."""
