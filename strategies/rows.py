"""Ledger rows of messages, as sent or as they would have been sent."""

from fedsbc.ledger import LedgerRow
from fedsbc.ledger_row import Direction, Kind
from fedsbc.payload import PayloadBits


def ledger_row(
    *,
    round: int,
    client_id: int,
    direction: Direction,
    kind: Kind,
    bits: PayloadBits,
    envelope_bytes: int,
    num_params: int,
) -> LedgerRow:
    """Return the row of one message.

    Args:
        round: the round that it belongs to; 0 for the hello.
        client_id: the client that sent or received it.
        direction: `up` or `down`.
        kind: what it is for.
        bits: of all payloads inside.
        envelope_bytes: bytes of its records, the payloads included.
        num_params: d, for the dense bits.
    """
    return LedgerRow(
        round=round,
        client_id=client_id,
        direction=direction,
        kind=kind,
        num_kept=bits.num_kept,
        position_bits=bits.position_bits,
        value_bits=bits.value_bits,
        header_bits=bits.header_bits,
        padding_bits=bits.padding_bits,
        payload_bits=bits.payload_bits,
        envelope_bits=8 * envelope_bytes,
        dense_bits=32 * num_params,
    )
