"""How a client comes to the server's weights: by shared memory, whole, or by missed payloads."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.errors import RunError, WireError
from fedsbc.flat_model import FlatModel, model_sha256
from fedsbc.layout import Layout
from fedsbc.message import MAX_CHAIN, ModelRequest
from fedsbc.payload import decode
from fedsbc.state import ClientState, StateHome

from .worker import Worker

HASH_DIGITS = 16
"""Of a model's sha256 in messages."""


class NeedsModel(RunError):
    """The weights cannot be had in the way that was tried; the server sends the full model next."""


@dataclass(frozen=True)
class Base:
    """The server's model of one version, as this client has it.

    Attributes:
        version: the server's version.
        weights: float32, shape (d,), read only.
        buffers: float buffers, float32, read only; where they are `local`, those that a client
            starts with.
        model: its hash, as in the request.
        is_shared: whether the engine keeps it; otherwise the client's state must.
    """

    version: int
    weights: Vector
    buffers: Vector
    model: str
    is_shared: bool


def base_for(
    request: ModelRequest,
    arrays: Mapping[str, bytes],
    state: ClientState | None,
    home: StateHome,
    worker: Worker,
) -> Base:
    """Return the model of the version that a request asks for.

    Raises:
        WireError: the request or a payload is not one of ours.
        NeedsModel: the weights cannot be had, or are not the server's.
    """
    if request.content == "shared":
        shared = home.base_weights(request.version)
        if shared is None:
            raise NeedsModel(f"version {request.version} is not in this node's shared memory")
        return Base(request.version, *shared, request.model, is_shared=True)
    weights, buffers = _received(request, dict(arrays), state, worker)
    found = model_sha256(weights, buffers if worker.averages_buffers else buffers[:0])
    if found[:HASH_DIGITS] != request.model:
        raise NeedsModel(
            f"model of version {request.version} has hash {found[:HASH_DIGITS]}, the server's is "
            f"{request.model}"
        )
    return Base(request.version, weights, buffers, request.model, is_shared=False)


def _received(
    request: ModelRequest, arrays: dict[str, bytes], state: ClientState | None, worker: Worker
) -> tuple[Vector, Vector]:
    """Return weights and float buffers from what came with the request."""
    model = worker.model
    buffers, given = worker.initial_buffers, arrays.pop("buffers", None)
    if given is not None:
        buffers = decode(given, model.buffer_layout).to_dense()
    elif worker.averages_buffers:
        raise WireError("the request carries no `buffers`")
    if request.content == "full" and arrays.keys() == {"full"}:
        return decode(arrays["full"], model.layout).to_dense(), buffers
    if request.content == "payloads":
        return _caught_up(request, _chain(request, arrays, model.layout), state, model), buffers
    raise WireError(f"content {request.content!r} with payloads {sorted(arrays)[:5]}")


def _chain(request: ModelRequest, arrays: dict[str, bytes], layout: Layout) -> dict[int, bytes]:
    """Return the payloads by version; a round that changed nothing has none.

    A chain is never longer than `MAX_CHAIN`, nor than the full model that would have come instead.
    """
    if len(arrays) > MAX_CHAIN:
        raise WireError(f"{len(arrays)} payloads in a row; expected at most {MAX_CHAIN}")
    num_bytes, most = sum(map(len, arrays.values())), full_model_bytes(layout)
    if num_bytes > most:
        raise WireError(f"payloads of {num_bytes} bytes; the full model has {most}")
    chain = {}
    for name, payload in arrays.items():
        digits = name[1:]
        if name[:1] != "v" or not (digits.isascii() and digits.isdigit() and len(digits) < 19):
            raise WireError(f"payload {name!r}: not the name of a version")
        if not request.base_version < int(digits) <= request.version:
            raise WireError(
                f"payload {name!r}: not between versions {request.base_version} and "
                f"{request.version}"
            )
        chain[int(digits)] = payload
    return chain


def full_model_bytes(layout: Layout) -> int:
    """Return a bound on the bytes of a full model: header, a row for each tensor, float32s."""
    return 16 + 8 * len(layout.tensors) + 4 * layout.size


def _caught_up(
    request: ModelRequest, chain: dict[int, bytes], state: ClientState | None, model: FlatModel
) -> Vector:
    """Apply the payloads that this client has not applied yet, one after the other."""
    has_base = state is not None and "base" in state.arrays
    held = state.base_version if state is not None and has_base else -1
    if state is None or not has_base or not request.base_version <= held <= request.version:
        raise NeedsModel(
            f"holds version {held}, but the payloads lead from {request.base_version} to "
            f"{request.version}"
        )
    weights = model.layout.zeros()
    weights[:] = state.arrays["base"]
    with np.errstate(over="ignore", invalid="ignore"):  # the hash says whether they are right
        for version in sorted(chain):
            if version > held:
                decode(chain[version], model.layout).add_to(weights)
    return weights
