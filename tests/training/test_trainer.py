from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from fedsbc import models
from fedsbc.arrays import ALIGNMENT_BYTES
from fedsbc.flat_model import FlatModel
from fedsbc.seeds import Stream, generator
from fedsbc.training import options_for_optimizer, options_for_schedule
from fedsbc.training.sequential import gradient_of


def same(first, second):
    states = first.optimizer_state, second.optimizer_state
    return (
        (first.delta == second.delta).all()
        and (first.buffers == second.buffers).all()
        and first.loss == second.loss
        and states[0].keys() == states[1].keys()
        and all((states[0][key] == states[1][key]).all() for key in states[0])
    )


def dropout_module():
    torch.manual_seed(0)
    layers = [nn.Flatten(), nn.Linear(784, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 10)]
    return nn.Sequential(*layers)


def bn_1d_module():
    torch.manual_seed(0)
    layers = [nn.Flatten(), nn.Linear(784, 8), nn.BatchNorm1d(8, momentum=None), nn.Linear(8, 10)]
    return nn.Sequential(*layers)


def test_the_delta_is_what_a_plain_torch_loop_gives(bench, digits):
    b = bench("lenet5-caffe", local_steps=4, batch_size=8)
    result = b.train(digits, rows=range(100, 120), client_id=3, round=2)
    module = models.build(models.options_for("lenet5-caffe")(), 0)
    x, y = (tensor[100:120] for tensor in digits.train_tensors())
    draws = generator(7, Stream.BATCHES, 3, 2)
    orders = [draws.permutation(20), draws.permutation(20)]
    batches = [orders[0][:8], orders[0][8:16], orders[0][16:], orders[1][:8]]
    losses = []
    for batch in batches:
        loss = functional.cross_entropy(module(x[batch]), y[batch])
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, list(module.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(module.parameters(), gradients, strict=True):
                parameter -= 0.05 * gradient
    np.testing.assert_allclose(result.delta, FlatModel(module).weights - b.base, atol=1e-6)
    assert result.loss == pytest.approx(np.mean(losses), rel=1e-5)
    assert (result.num_steps, result.num_samples) == (4, 20)
    assert result.delta.dtype == np.float32
    assert result.delta.ctypes.data % ALIGNMENT_BYTES == 0


@pytest.mark.parametrize(
    "options",
    [
        {"name": "lenet5-caffe"},
        {"name": "cnn-bn", "optimizer": options_for_optimizer("adam")(keep_momentum=True)},
        {"module": dropout_module},
        {"module": bn_1d_module},
    ],
)
def test_nothing_that_ran_before_shows_in_a_result(bench, digits, options):
    options = {key: value() if key == "module" else value for key, value in options.items()}
    b = bench(**options)
    alone = b.train(digits, client_id=1)
    b.train(digits, rows=range(50, 75), client_id=2, optimizer_state=alone.optimizer_state)
    torch.rand(5)
    assert same(b.train(digits, client_id=1), alone)


@pytest.mark.parametrize("change", ["seed", "client_id", "round"])
@pytest.mark.parametrize("module", [None, dropout_module])
def test_seed_client_and_round_decide_the_batches_and_dropout(bench, digits, change, module):
    full_batches = {} if module is None else {"batch_size": 30}
    b = bench(module=module and module(), **full_batches)
    first = b.train(digits, rows=range(30))
    other = b.train(digits, rows=range(30), **{change: 5})
    assert (first.delta != other.delta).any()


@pytest.mark.parametrize("name", ["mlp", "lenet5-caffe", "cnn-bn"])
@pytest.mark.parametrize("batch_size", [1, 7, 10])
def test_inference_mode_changes_no_byte(bench, digits, monkeypatch, name, batch_size):
    b = bench(name, batch_size=batch_size)
    expected = b.train(digits)
    monkeypatch.setattr(torch, "inference_mode", lambda mode: nullcontext())
    assert same(b.train(digits), expected)


@pytest.mark.parametrize("make", [None, dropout_module])
def test_the_mode_that_the_module_was_left_in_does_not_matter(bench, digits, make):
    b = bench(module=make and make())
    expected = b.train(digits)
    b.model.module.eval()
    assert same(b.train(digits), expected)


def test_after_training_autograd_and_the_written_out_gradient_both_work(bench, digits):
    b = bench("mlp")
    b.train(digits)
    x, y = (tensor[:10] for tensor in digits.train_tensors())
    b.model.gradient.zero_()
    functional.cross_entropy(b.model.module(x), y).backward()
    by_autograd = b.model.gradient.clone()
    gradient_of(b.model)(x, y)
    torch.testing.assert_close(b.model.gradient, by_autograd)


def test_threads_are_set_by_training_itself(bench, digits):
    b = bench()
    torch.set_num_threads(2)
    b.train(digits)
    assert torch.get_num_threads() == 1


def test_rows_of_the_whole_set_and_the_samples_themselves_are_the_same(bench, digits):
    b = bench("lenet5-caffe")
    rows = np.array([5, 9, 200, 31, 77, 1000, 3, 2, 8, 11, 12])
    expected = b.train(digits, rows=rows)
    own = b.trainer.train(
        b.base,
        b.buffers,
        digits.train_images[rows],
        digits.y_train[rows],
        seed=7,
        client_id=0,
        round=1,
        first_step=0,
    )
    assert same(own, expected)


def test_read_only_inputs_are_enough_and_stay_as_they_are(bench, digits):
    b = bench("cnn-bn", optimizer=options_for_optimizer("adam")(keep_momentum=True))
    state = b.train(digits).optimizer_state
    expected = b.train(digits, optimizer_state=state)
    kept = b.base.copy(), {key: array.copy() for key, array in state.items()}
    for array in (b.base, b.buffers, *state.values()):
        array.flags.writeable = False
    assert same(b.train(digits, optimizer_state=state), expected)
    assert (b.base == kept[0]).all()
    assert all((state[key] == kept[1][key]).all() for key in state)


def test_the_delta_goes_where_it_is_asked_to(bench, digits):
    b = bench()
    out = np.zeros_like(b.base)
    result = b.train(digits, out=out)
    assert result.delta is out
    assert (out == b.train(digits).delta).all()


@pytest.mark.parametrize(("num_samples", "expected"), [(0, 0), (5, 2), (10, 2), (11, 4), (25, 6)])
def test_epochs_instead_of_steps(bench, digits, num_samples, expected):
    b = bench(local_steps=None, local_epochs=2)
    assert b.trainer.num_steps(num_samples) == expected
    assert b.train(digits, rows=range(num_samples)).num_steps == expected


def test_pitfall_21_an_empty_client_sends_no_change_and_counts_no_sample(bench, digits):
    b = bench("cnn-bn")
    result = b.train(digits, rows=[])
    assert (result.delta == 0).all()
    assert (result.buffers == b.buffers).all()
    assert (result.loss, result.num_steps, result.num_samples) == (0.0, 0, 0)


def test_pitfall_27_samples_are_counted_not_batches(bench, digits):
    assert bench().train(digits, rows=range(25)).num_samples == 25


@pytest.mark.parametrize(
    ("num_samples", "batch_size", "trained"), [(11, 10, 1), (1, 10, 0), (3, 1, 0)]
)
def test_pitfall_23_batchnorm_and_a_single_sample(bench, digits, num_samples, batch_size, trained):
    b = bench(module=bn_1d_module(), local_steps=2, batch_size=batch_size)
    result = b.train(digits, rows=range(num_samples))
    assert np.isfinite(result.delta).all()
    assert (result.delta != 0).any()
    assert (result.buffers != b.buffers).any() == bool(trained)
    assert int(result.optimizer_state["buffer.2.num_batches_tracked"]) == 2 * trained


def test_pitfall_24_integer_buffers_are_the_clients_own_and_go_on(bench, digits):
    b = bench("cnn-bn")
    first = b.train(digits)
    second = b.train(digits, round=2, optimizer_state=first.optimizer_state)
    name = "buffer.norm1.num_batches_tracked"
    counts = [int(result.optimizer_state[name]) for result in (first, second)]
    assert counts == [3, 6]
    assert first.optimizer_state[name].dtype == np.int64
    assert (second.buffers != b.buffers).any()


def test_momentum_is_kept_between_rounds_or_reset(bench, digits):
    for keep in (False, True):
        optimizer = options_for_optimizer("sgd")(lr=0.05, momentum=0.9, keep_momentum=keep)
        b = bench(optimizer=optimizer)
        state = b.train(digits).optimizer_state
        fresh = b.train(digits, round=2)
        carried = b.train(digits, round=2, optimizer_state=state)
        assert ("momentum" in state) == keep
        assert (fresh.delta != carried.delta).any() == keep


def test_the_schedule_follows_the_steps_of_the_run_whatever_the_delay(bench, digits):
    schedule = options_for_schedule("step")(milestones=[2], decay=1e-9)
    short, long = (bench(local_steps=n, schedule=schedule) for n in (2, 6))
    before = short.train(digits, first_step=0).delta
    assert (long.train(digits, first_step=0).delta == before).mean() > 0.99
    assert np.abs(short.train(digits, first_step=2).delta).max() < 1e-6


def test_a_loss_that_is_not_finite_shows(bench, digits):
    b = bench(optimizer=options_for_optimizer("sgd")(lr=1e30), local_steps=5)
    result = b.train(digits)
    assert not np.isfinite(result.delta).all()
    assert not np.isfinite(result.loss)
