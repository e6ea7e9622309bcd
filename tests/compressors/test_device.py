"""Selection on a torch device gives what selection in main memory gives, bit for bit."""

import numpy as np
import pytest
import torch

from fedsbc import payload
from fedsbc.compressors import make, options_for
from fedsbc.errors import UpdateError
from fedsbc.feedback import compress_with_feedback
from fedsbc.selection import largest
from fedsbc.selection_torch import compress_on_device
from fedsbc.selection_torch import largest as largest_on_device
from fedsbc.testing import LAYOUTS, vectors

NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NO_CUDA])]
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", [0, 1, 7, 99, 100, 101])
def test_largest(k, device):
    for name, keys in vectors(100).items():
        found = largest_on_device(torch.from_numpy(keys).to(device), k)
        assert found.tolist() == largest(keys, k).tolist(), name
        assert found.dtype == torch.int64


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["sbc", "topk"])
@pytest.mark.parametrize("scope", ["tensor", "model"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: str(layout.size))
def test_update_and_residual_equal_those_of_main_memory(layout, scope, name, device):
    compressor = make(options_for(name)(density=0.05, scope=scope))
    for vector in vectors(layout.size).values():
        delta, residual = vector * np.float32(0.75), vector * np.float32(0.25)
        expected = compress_with_feedback(compressor, delta, residual, layout, {}, RNG)
        there = [torch.from_numpy(v).to(device) for v in (delta, residual)]
        update, left = compress_on_device(compressor, *there, layout)
        assert update == expected.update
        assert payload.encode(update) == payload.encode(expected.update)
        assert left.device == there[0].device
        assert left.cpu().numpy().tobytes() == expected.residual.tobytes()
        assert there[0].cpu().numpy().tobytes() == delta.tobytes()


def test_first_round_and_no_error_feedback():
    layout = LAYOUTS[0]
    delta = torch.from_numpy(vectors(layout.size)["normal"])
    with_feedback = make(options_for("sbc")(density=0.05))
    without = make(options_for("sbc")(density=0.05, error_feedback=False))
    update, residual = compress_on_device(with_feedback, delta, None, layout)
    assert residual.numpy().tobytes() == (delta.numpy() - update.to_dense()).tobytes()
    assert compress_on_device(without, delta, None, layout) == (update, None)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite_is_refused(bad, device):
    layout = LAYOUTS[0]
    delta = torch.from_numpy(vectors(layout.size)["normal"]).to(device)
    delta[1203] = bad
    compressor = make(options_for("sbc")(density=0.05))
    with pytest.raises(UpdateError, match="entry 2 of tensor 'bias'"):
        compress_on_device(compressor, delta, None, layout)


@pytest.mark.parametrize("delta", [torch.ones(5), torch.ones(1234, dtype=torch.float16)])
def test_wrong_form_is_refused(delta):
    with pytest.raises(UpdateError, match=r"float32 tensor of shape \(1234,\)"):
        compress_on_device(make(options_for("topk")(density=0.1)), delta, None, LAYOUTS[0])
