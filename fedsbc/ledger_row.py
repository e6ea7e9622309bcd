"""One message of the ledger, and sums over messages. All figures are bits."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, TypeAlias, get_args

Direction: TypeAlias = Literal["down", "up"]
"""`up`: client to server. `down`: server to client."""

Kind: TypeAlias = Literal["hello", "train", "evaluate", "sync"]
"""What a message is for; `sync` is the final synchronisation of a run."""

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
KINDS: tuple[Kind, ...] = get_args(Kind)

KEYS = ("round", "kind", "client_id", "direction")
"""Columns that a row is ordered by; kinds and directions in the order of their names above."""

AMOUNTS = (
    "num_kept",
    "position_bits",
    "value_bits",
    "header_bits",
    "padding_bits",
    "payload_bits",
    "envelope_bits",
    "dense_bits",
)
"""Columns that are summed."""


@dataclass(frozen=True)
class LedgerRow:
    """One message. All `_bits` are bits of this message alone.

    Attributes:
        round: the round it belongs to; 0 is the hello.
        client_id: the client that sent or received it.
        direction: `up` (client to server) or `down` (server to client).
        kind: what the message is for.
        num_kept: number of model entries that the payload carries.
        position_bits: bits that say which entries.
        value_bits: bits that say what values.
        header_bits: bits of the payload's headers.
        padding_bits: bits that fill up bytes.
        payload_bits: the four before together; 8 x the payload's bytes.
        envelope_bits: 8 x the bytes of the message's records without its metadata,
            the payload included where it travelled inside.
        dense_bits: what the model is as dense float32, 32 d.
    """

    round: int
    client_id: int
    direction: Direction
    kind: Kind
    num_kept: int
    position_bits: int
    value_bits: int
    header_bits: int
    padding_bits: int
    payload_bits: int
    envelope_bits: int
    dense_bits: int

    def __post_init__(self) -> None:
        assert self.direction in DIRECTIONS, self.direction
        assert self.kind in KINDS, self.kind
        assert min(self.round, self.client_id, *_amounts(self)) >= 0, f"negative: {self}"
        parts = self.position_bits + self.value_bits + self.header_bits + self.padding_bits
        assert self.payload_bits == parts, f"payload_bits is not the sum of its parts: {self}"

    def amounts(self) -> tuple[int, ...]:
        """Return the values of the summed columns, in their order."""
        amounts: tuple[int, ...] = _amounts(self)
        return amounts


_amounts = attrgetter(*AMOUNTS)


@dataclass(frozen=True)
class Totals:
    """Sums over a choice of messages.

    Attributes:
        num_messages: number of messages; the other fields are sums of those of `LedgerRow`.
    """

    num_messages: int
    num_kept: int
    position_bits: int
    value_bits: int
    header_bits: int
    padding_bits: int
    payload_bits: int
    envelope_bits: int
    dense_bits: int


@dataclass(frozen=True)
class RunTotals:
    """Where a run stands, summed over all clients and messages.

    Attributes:
        up: sums over the messages from clients to the server.
        down: sums over the messages from the server to clients.
        up_ratio_fedavg: see `Ledger.up_ratio_fedavg`.
        down_ratio_fedavg: see `Ledger.down_ratio_fedavg`.
    """

    up: Totals
    down: Totals
    up_ratio_fedavg: float | None
    down_ratio_fedavg: float | None
