"""What a client accepts as the server's weights: as strict as the server is with updates."""

import numpy as np
import pytest

from clients.base import NeedsModel, base_for, full_model_bytes
from clients.worker import Worker
from fedsbc.errors import WireError
from fedsbc.flat_model import model_sha256
from fedsbc.message import MAX_CHAIN, TrainRequest
from fedsbc.payload import encode
from fedsbc.state import ClientState
from fedsbc.updates import DenseBlock, SparseMeanBlock, Update
from tests.experiments import small


class NoHome:
    """A home that shares nothing."""

    def base_weights(self, version):
        return None


@pytest.fixture(scope="module")
def worker():
    return Worker(small(), None)


@pytest.fixture(scope="module")
def weights(worker):
    return np.linspace(-1, 1, worker.model.num_params, dtype=np.float32)


def request(content, weights, base_version=-1, version=5):
    model = model_sha256(weights, weights[:0])[:16]
    return TrainRequest("run", 1, version + 1, 0, version, model, content, base_version, 0, 0)


def full(worker, weights):
    layout = worker.model.layout
    return encode(Update(layout, [DenseBlock(view) for view in layout.split(weights)]))


def change(worker, value):
    blocks = [
        SparseMeanBlock(tensor.size, np.array([0]), np.float32(value))
        for tensor in worker.model.layout.tensors
    ]
    return Update(worker.model.layout, blocks)


def held(weights, version):
    return ClientState("run", version, version, {"base": weights})


def test_a_full_model(worker, weights):
    base = base_for(
        request("full", weights), {"full": full(worker, weights)}, None, NoHome(), worker
    )
    assert base.weights.tobytes() == weights.tobytes()


def test_payloads_are_applied_one_after_the_other_and_none_twice(worker, weights):
    changes = {version: change(worker, version) for version in (3, 4, 5)}
    versions = {2: weights}
    for version, update in changes.items():
        versions[version] = versions[version - 1].copy()
        update.add_to(versions[version])
    arrays = {f"v{version}": encode(update) for version, update in changes.items()}
    for version in (2, 3, 5):  # a client that knows more than the server thinks
        state = held(versions[version], version)
        base = base_for(request("payloads", versions[5], 2), arrays, state, NoHome(), worker)
        assert base.weights.tobytes() == versions[5].tobytes()


@pytest.mark.parametrize("version", [None, 1, 6])
def test_a_client_whose_base_does_not_fit_needs_the_model(worker, weights, version):
    state = None if version is None else held(weights, version)
    with pytest.raises(NeedsModel, match="holds version"):
        base_for(request("payloads", weights, 2), {}, state, NoHome(), worker)


def test_weights_that_are_not_the_servers_are_not_trained_on(worker, weights):
    with pytest.raises(NeedsModel, match="has hash"):
        base_for(request("payloads", weights, 5), {}, held(weights * 2, 5), NoHome(), worker)
    with pytest.raises(NeedsModel, match="shared memory"):
        base_for(request("shared", weights), {}, None, NoHome(), worker)


def test_pitfall_30_hostile_requests(worker, weights):
    payload = encode(change(worker, 1))
    whole = full(worker, weights)
    bad = {
        "an unknown content": ("other", {}, "content 'other'"),
        "nothing": ("full", {}, "content 'full'"),
        "something else": ("full", {"v3": payload}, "content 'full'"),
        "a truncated model": ("full", {"full": whole[:-1]}, "damaged"),
        "a truncated payload": ("payloads", {"v3": payload[:-1]}, "damaged"),
        "no version": ("payloads", {"w3": payload}, "not the name of a version"),
        "a huge version": ("payloads", {"v" + "9" * 30: payload}, "not the name of a version"),
        "a signed version": ("payloads", {"v-3": payload}, "not the name of a version"),
        "an old version": ("payloads", {"v2": payload}, "not between versions"),
        "a later version": ("payloads", {"v6": payload}, "not between versions"),
        "as long as a model": ("payloads", {"v3": whole, "v4": whole}, "the full model has"),
        "an endless chain": (
            "payloads",
            {f"v{version}": b"" for version in range(MAX_CHAIN + 1)},
            "in a row",
        ),
    }
    for content, arrays, expected in bad.values():
        with pytest.raises(WireError, match=expected):
            base_for(request(content, weights, 2), arrays, held(weights, 2), NoHome(), worker)


def test_a_distant_version_costs_no_time(worker, weights):
    far = request("payloads", weights, 2, version=2**62)
    base = base_for(far, {}, held(weights, 2), NoHome(), worker)
    assert base.version == 2**62


def test_the_bound_of_a_chain_is_what_a_full_model_takes(worker, weights):
    assert len(full(worker, weights)) <= full_model_bytes(worker.model.layout)
    assert len(full(worker, weights)) > 4 * worker.model.num_params
