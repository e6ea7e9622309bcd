"""Clients on a device: what lies there, what is compressed there, what is kept there.

Without a GPU the same code runs on tensors in main memory; tests marked `gpu` need one.
"""

import numpy as np
import pytest
import torch

from clients.compression import compress
from clients.device_memory import DeviceMemory
from clients.worker import Worker, device_here
from fedsbc import compressors, payload
from fedsbc.compressors.dgc import DgcOptions
from fedsbc.errors import ConfigError, UpdateError
from fedsbc.testing import LAYOUTS, vectors
from tests.experiments import small

NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NO_CUDA])]
CPU = torch.device("cpu")


def options(name):
    """Return options of a scheme; `dgc` selects, but corrects the change first."""
    if name == "dgc":
        return DgcOptions(density=0.05)
    given = {"density": 0.05} if name in {"sbc", "topk"} else {}
    return compressors.options_for(name)(**given)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["sbc", "topk", "dgc", "none", "signsgd", "qsgd"])
def test_a_change_on_a_device_gives_the_bytes_of_one_in_main_memory(name, device):
    compressor, layout = compressors.make(options(name)), LAYOUTS[0]
    for vector in list(vectors(layout.size).values())[:4]:
        residual = vector[::-1].copy() if compressor.options.error_feedback else None
        state = compressor.init_state(layout)
        results = [
            compress(compressor, change, residual, layout, state, np.random.default_rng(1))
            for change in (vector.copy(), torch.from_numpy(vector.copy()).to(device))
        ]
        here, there = results
        assert payload.encode(here.update) == payload.encode(there.update)
        assert (here.residual is None) == (there.residual is None)
        if here.residual is not None:
            assert here.residual.tobytes() == there.residual.tobytes()
        assert here.state.keys() == there.state.keys()


def test_what_is_not_finite_is_refused_there_too():
    compressor, layout = compressors.make(options("sbc")), LAYOUTS[0]
    change = torch.zeros(layout.size)
    change[3] = float("nan")
    with pytest.raises(UpdateError, match="not finite"):
        compress(compressor, change, None, layout, {}, np.random.default_rng(1))


def samples(count=40):
    images = np.arange(count * 4, dtype=np.float32).reshape(count, 1, 2, 2)
    return images, np.arange(count)


def chosen(part):
    x, y, rows = part
    return np.asarray(x)[rows].tolist(), np.asarray(y)[rows].tolist()


def test_partitions_are_kept_while_they_fit_and_the_oldest_goes_first():
    images, labels = samples()
    each = 10 * (4 * 4 + 8)
    memory = DeviceMemory(CPU, limit_bytes=2 * each)
    parts = [np.arange(10 * i, 10 * i + 10) for i in range(4)]
    for client in (0, 1, 0, 2):  # 1 was used least lately
        found = memory.part(client, parts[client], images, labels)
        assert isinstance(found[0], torch.Tensor)
        assert chosen(found) == chosen((images, labels, parts[client]))
    assert list(memory._kept) == [0, 2]
    assert memory._used_bytes == 2 * each


def test_a_partition_that_does_not_fit_stays_where_it_is():
    images, labels = samples()
    rows = np.arange(30)
    for memory in (DeviceMemory(CPU, limit_bytes=100), DeviceMemory(CPU)):
        x, y, found = memory.part(0, rows, images, labels)
        assert x is images
        assert y is labels
        assert found is rows
        memory.give_back()


def train(worker, base=None, client_id=2):
    base = worker.model.weights.copy() if base is None else base
    x, y, rows = worker.samples(client_id)
    ids = {"seed": 3, "client_id": client_id, "round": 1, "first_step": 0}
    return worker.trainer.train(base, worker.initial_buffers, x, y, rows=rows, **ids)


def test_kept_samples_change_no_byte():
    plain, keeping = Worker(small(), None), Worker(small(), None)
    keeping.memory = DeviceMemory(CPU, limit_bytes=10**9)
    first, second = train(plain), train(keeping)
    assert isinstance(keeping.samples(2)[0], torch.Tensor)
    assert first.delta.tobytes() == second.delta.tobytes()
    assert first.loss == second.loss


def test_a_change_that_stays_on_the_device_is_the_same_change():
    plain, there = Worker(small(), None), Worker(small(), None)
    there.trainer._base = there.model.flat_weights.clone()  # as on a GPU
    first, second = train(plain), train(there)
    assert isinstance(second.change, torch.Tensor)
    assert first.delta.tobytes() == second.delta.tobytes()
    assert second.delta is second.delta, "brought to main memory once"


def test_a_node_without_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_here(small()) == "cpu"
    assert device_here(small("engine.device=cpu")) == "cpu"
    with pytest.raises(ConfigError, match="this node sees no CUDA device"):
        device_here(small("engine.device=cuda"))


@pytest.mark.gpu
@NO_CUDA
def test_training_on_a_gpu_repeats_itself_and_is_close_to_the_cpu():
    config = small("clients.local_steps=10")
    on_cpu = Worker(config, None)
    base = on_cpu.model.weights.copy()
    expected = train(on_cpu, base)
    worker = Worker(config, None, device="cuda", gpu_share=0.25)
    first, second = (train(worker, base).delta for _ in range(2))
    assert first.tobytes() == second.tobytes()
    np.testing.assert_allclose(first, expected.delta, atol=1e-4)
    assert torch.are_deterministic_algorithms_enabled()
