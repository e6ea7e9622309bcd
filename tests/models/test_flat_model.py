import hashlib
import struct

import numpy as np
import pytest
import torch
from torch import nn

from fedsbc import models
from fedsbc.arrays import ALIGNMENT_BYTES
from fedsbc.errors import ConfigError
from fedsbc.flat_model import FlatModel, as_tensor, model_sha256


def lenet():
    return models.build(models.options_for("lenet5-caffe")(), 0)


def bn():
    return models.build(models.options_for("cnn-bn")(), 0)


def test_values_and_outputs_survive_the_re_binding():
    module = lenet()
    x = torch.linspace(-1, 1, 3 * 784).reshape(3, 1, 28, 28)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    expected = module(x).detach()
    model = FlatModel(module)
    for spec in model.layout.tensors:
        assert (model.weights[spec.slice].reshape(spec.shape) == before[spec.name].numpy()).all()
    torch.testing.assert_close(model.module(x).detach(), expected)


def test_numpy_and_the_module_share_aligned_memory():
    model = FlatModel(lenet())
    assert model.weights.ctypes.data % ALIGNMENT_BYTES == 0
    assert model.gradient.data_ptr() % ALIGNMENT_BYTES == 0
    model.weights[:] = 3
    assert all((p == 3).all() for p in model.module.parameters())


def test_backward_writes_into_the_flat_gradient():
    model = FlatModel(lenet())
    gradient = model.gradient
    model.module(torch.ones(2, 1, 28, 28)).sum().backward()
    packed = torch.cat([p.grad.flatten() for p in model.module.parameters()])
    assert torch.equal(gradient, packed)
    assert gradient.abs().sum() > 0


def test_float_buffers_are_flat_and_live_and_integers_stay():
    model = FlatModel(bn())
    assert [t.name for t in model.buffer_layout.tensors] == [
        "norm1.running_mean",
        "norm1.running_var",
        "norm2.running_mean",
        "norm2.running_var",
    ]
    before = model.buffers.copy()
    model.module(torch.rand(4, 1, 28, 28))
    assert (model.buffers != before).any()
    assert model.module.norm1.running_mean.data_ptr() == model.buffers.ctypes.data
    assert {n: int(b) for n, b in model.integer_buffers.items()} == {
        "norm1.num_batches_tracked": 1,
        "norm2.num_batches_tracked": 1,
    }


def test_load_sets_weights_and_buffers_and_leaves_buffers_when_not_given():
    model = FlatModel(bn())
    weights = np.arange(model.num_params, dtype=np.float32)
    buffers = np.arange(model.buffer_layout.size, dtype=np.float32)
    model.load(weights, buffers)
    model.load(weights + 1)
    assert (model.weights == weights + 1).all()
    assert (model.buffers == buffers).all()


def test_tied_weights_are_there_once_and_stay_tied():
    module = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    module[1].weight = module[0].weight
    model = FlatModel(module)
    assert model.num_params == 16
    model.weights[:] = 2
    assert (module[1].weight == 2).all()
    assert module[1].weight is module[0].weight


def test_a_model_that_is_not_float32_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"weight is torch\.float16"):
        FlatModel(nn.Linear(2, 2).half())


def test_a_frozen_parameter_is_refused_by_name():
    module = nn.Linear(2, 2)
    module.bias.requires_grad = False
    with pytest.raises(ConfigError, match="bias is a frozen parameter"):
        FlatModel(module)


def test_sha256_is_over_little_endian_weights_then_buffers():
    expected = hashlib.sha256(struct.pack("<3f", 1.5, -2, 7)).hexdigest()
    weights, buffers = np.array([1.5, -2], np.float32), np.array([7], np.float32)
    assert model_sha256(weights, buffers) == expected
    assert model_sha256(weights.astype(">f4"), buffers) == expected


def test_read_only_arrays_become_tensors_without_a_copy_or_a_warning():
    array = np.arange(3, dtype=np.float32)
    array.flags.writeable = False
    assert as_tensor(array).data_ptr() == array.ctypes.data
