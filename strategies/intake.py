"""What the server accepts: every reply is checked here before it counts."""

import math
from dataclasses import dataclass

import numpy as np
from flwr.app import Message

from fedsbc.errors import UpdateError, WireError
from fedsbc.layout import Layout
from fedsbc.message import TrainReply, TrainRequest, unpack
from fedsbc.payload import PayloadBits, decode_and_measure, measure
from fedsbc.updates import Update

from .server import NO_BITS, add_bits


@dataclass(frozen=True)
class Accepted:
    """A reply that counts.

    Attributes:
        reply: its fields.
        update: the decoded update of the parameters.
        buffers: the decoded float buffers, or None where the layout has none.
        payload: the bytes of the update as they came.
        bits: of all payloads inside.
    """

    reply: TrainReply
    update: Update
    buffers: Update | None
    payload: bytes
    bits: PayloadBits


def accept(
    message: Message,
    request: TrainRequest,
    num_samples: int,
    layout: Layout,
    buffer_layout: Layout,
    *,
    max_norm: float | None = None,
) -> Accepted:
    """Check and decode the reply to a request.

    Args:
        message: the reply, not an error.
        request: what was asked.
        num_samples: what the client said in its hello.
        layout: of the parameters.
        buffer_layout: of the float buffers that are sent; empty where they stay local.
        max_norm: an update with a larger Euclidean norm is refused; None for no bound.

    Raises:
        WireError: a field or a payload is not what was asked for.
        UpdateError: the update must not be used.
    """
    reply, arrays = unpack(message.content, TrainReply)
    for name in ("run_id", "round", "client_id"):
        if getattr(reply, name) != getattr(request, name):
            raise WireError(
                f"reply has {name} {getattr(reply, name)!r}; asked for {getattr(request, name)!r}"
            )
    if reply.base_version != request.version:
        raise WireError(
            f"update is relative to version {reply.base_version}, not {request.version}"
        )
    if reply.num_samples != num_samples or reply.num_steps < 0:
        raise UpdateError(f"claims {reply.num_samples} samples, but {num_samples} in its hello")
    if not (math.isfinite(reply.forgotten) and reply.forgotten >= 0):
        raise UpdateError(f"claims to have forgotten {reply.forgotten}")
    expected = {"update", "buffers"} if buffer_layout.size else {"update"}
    if arrays.keys() != expected:
        raise WireError(f"reply carries {sorted(arrays)}; expected {sorted(expected)}")
    update, bits = decode_and_measure(arrays["update"], layout)
    buffers = None
    if buffer_layout.size:
        buffers, buffer_bits = decode_and_measure(arrays["buffers"], buffer_layout)
        bits = add_bits(bits, buffer_bits)
    if max_norm is not None:
        _check_norm(update, max_norm)
    return Accepted(reply, update, buffers, arrays["update"], bits)


def _check_norm(update: Update, max_norm: float) -> None:
    norm = float(np.linalg.norm(update.to_dense().astype(np.float64)))
    if norm > max_norm:
        raise UpdateError(f"norm {norm:.4g} is above failures.max_update_norm: {max_norm:g}")


def bits_or_none(message: Message, layout: Layout) -> PayloadBits:
    """Return the payload bits of a reply that is not used, zero where it carries none of ours."""
    try:
        _, arrays = unpack(message.content, TrainReply)
        return measure(arrays["update"], layout)
    except (WireError, KeyError, ValueError):
        return NO_BITS
