"""How a client comes to the server's weights: by shared memory, whole, or by missed payloads."""

from collections.abc import Mapping
from dataclasses import dataclass

from fedsbc.arrays import Vector
from fedsbc.errors import RunError
from fedsbc.flat_model import FlatModel, model_sha256
from fedsbc.message import EvaluateRequest, TrainRequest
from fedsbc.payload import decode
from fedsbc.state import ClientState, StateHome


class NeedsFullModelError(RunError):
    """This client cannot come to the version that is asked for; the server sends it whole."""


@dataclass(frozen=True)
class Base:
    """The server's model of one version, as this client has it.

    Attributes:
        version: the server's version.
        weights: float32, shape (d,), read only.
        buffers: float buffers, float32, read only.
        is_shared: whether the engine keeps it; otherwise the client's state must.
    """

    version: int
    weights: Vector
    buffers: Vector
    is_shared: bool


def base_for(
    request: TrainRequest | EvaluateRequest,
    arrays: Mapping[str, bytes],
    state: ClientState | None,
    home: StateHome,
    model: FlatModel,
) -> Base:
    """Return the model of the version that a request asks for.

    Raises:
        WireError: a payload is not one of ours.
        NeedsFullModelError: the base is unknown, lost, newer or another one.
        RunError: the engine does not share that version.
    """
    if request.content == "shared":
        shared = home.base_weights(request.version)
        if shared is None:
            raise RunError(f"version {request.version} is not in the shared memory of this node")
        return Base(request.version, *shared, is_shared=True)
    if request.content == "full":
        weights = decode(arrays["full"], model.layout).to_dense()
    else:
        weights = _caught_up(request, arrays, state, model)
    if "buffers" in arrays:
        buffers = decode(arrays["buffers"], model.buffer_layout).to_dense()
    else:
        buffers = model.buffer_layout.zeros()
    base = Base(request.version, weights, buffers, is_shared=False)
    if isinstance(request, TrainRequest):
        _check_model(request, base)
    return base


def _caught_up(
    request: TrainRequest | EvaluateRequest,
    arrays: Mapping[str, bytes],
    state: ClientState | None,
    model: FlatModel,
) -> Vector:
    """Apply the payloads of base_version + 1 .. version that this client has not applied yet."""
    if state is None or not request.base_version <= state.base_version <= request.version:
        held = -1 if state is None else state.base_version
        raise NeedsFullModelError(
            f"holds version {held}, but the payloads lead from {request.base_version} to "
            f"{request.version}: needs the full model"
        )
    weights = model.layout.zeros()
    weights[:] = state.arrays["base"]
    for version in range(state.base_version + 1, request.version + 1):
        payload = arrays.get(f"v{version}")
        if payload is not None:  # a round that changed nothing has none
            decode(payload, model.layout).add_to(weights)
    return weights


def _check_model(request: TrainRequest, base: Base) -> None:
    found = model_sha256(base.weights, base.buffers)[:16]
    if found != request.model:
        raise NeedsFullModelError(
            f"model of version {request.version} has hash {found}, the server's is "
            f"{request.model}: needs the full model"
        )
