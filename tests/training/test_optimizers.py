import numpy as np
import pytest
import torch
from pydantic import ValidationError

from fedsbc.errors import ConfigError
from fedsbc.layout import Layout
from fedsbc.training import mask_momentum, options_for_optimizer
from fedsbc.training.optimizers import make
from fedsbc.updates import DenseBlock, SparseFloatBlock, SparseMeanBlock, Update

SIZE = 50


def gradients(num_steps):
    return torch.from_numpy(
        np.random.default_rng(0).normal(size=(num_steps, SIZE)).astype(np.float32)
    )


def run(name, num_steps=6, lr=0.1, state=None, skip=0, **options):
    weights, gradient = torch.linspace(-1, 1, SIZE), torch.zeros(SIZE)
    optimizer = make(options_for_optimizer(name)(lr=lr, **options), weights, gradient)
    optimizer.reset(state or {})
    for found in gradients(skip + num_steps)[skip:]:
        gradient.copy_(found)
        optimizer.step(lr)
    return weights, optimizer.state()


def run_torch(make_optimizer, num_steps=6, clip_norm=None):
    weights = torch.nn.Parameter(torch.linspace(-1, 1, SIZE))
    optimizer = make_optimizer([weights])
    for found in gradients(num_steps):
        weights.grad = found.clone()
        if clip_norm is not None:
            torch.nn.utils.clip_grad_norm_([weights], clip_norm)
        optimizer.step()
    return weights.detach()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True},
        {"momentum": 0.5, "weight_decay": 0.1},
        {"weight_decay": 0.1},
    ],
)
def test_sgd_is_torchs(options):
    found, _ = run("sgd", **options)
    expected = run_torch(lambda ps: torch.optim.SGD(ps, lr=0.1, **options))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_adam_is_torchs(weight_decay):
    found, _ = run("adam", beta1=0.8, beta2=0.95, weight_decay=weight_decay)
    expected = run_torch(
        lambda ps: torch.optim.Adam(ps, lr=0.1, betas=(0.8, 0.95), weight_decay=weight_decay)
    )
    torch.testing.assert_close(found, expected)


def test_clipping_is_torchs_and_leaves_small_gradients_alone():
    for clip_norm in (1.0, 1e6):
        found, _ = run("sgd", clip_norm=clip_norm)
        expected = run_torch(lambda ps: torch.optim.SGD(ps, lr=0.1), clip_norm=clip_norm)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("name", "options"), [("sgd", {"momentum": 0.9}), ("adam", {})])
def test_a_kept_state_goes_on_where_it_stopped(name, options):
    _, whole = run(name, num_steps=6, keep_momentum=True, **options)
    _, half = run(name, num_steps=3, keep_momentum=True, **options)
    kept = {key: array.copy() for key, array in half.items()}
    _, joined = run(name, num_steps=3, skip=3, state=half, keep_momentum=True, **options)
    assert whole.keys() == joined.keys()
    assert all((joined[key] == whole[key]).all() for key in whole)
    assert all((half[key] == kept[key]).all() for key in kept)


def test_nothing_is_kept_unless_asked_for():
    assert run("sgd", momentum=0.9)[1] == {}
    assert run("adam")[1] == {}


def test_momentum_is_masked_where_something_was_sent():
    layout = Layout.of([("sparse", (4,)), ("mean", (3,)), ("dense", (2,)), ("quiet", (2,))])
    update = Update(
        layout,
        [
            SparseFloatBlock(4, np.array([1, 3]), np.array([0.5, -2], np.float32)),
            SparseMeanBlock(3, np.array([2]), np.float32(-1)),
            DenseBlock(np.array([0.0, 1.0], np.float32)),
            SparseMeanBlock(2, np.array([], np.int64), np.float32(0)),
        ],
    )
    ones = np.ones(11, np.float32)
    state = {"first_moment": ones.copy(), "second_moment": ones.copy(), "steps": np.array(3)}
    mask_momentum(state, update)
    assert state["first_moment"].tolist() == [1, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1]
    assert (state["second_moment"] == 1).all()
    mask_momentum({}, update)


@pytest.mark.parametrize(
    "options",
    [
        {"nesterov": True},
        {"keep_momentum": True},
        {"momentum": 0.9, "mask_momentum": True},
        {"momentum": 1.0},
        {"lr": 0.0},
        {"lr": float("nan")},
        {"clip_norm": -1.0},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ValidationError):
        options_for_optimizer("sgd")(**({"lr": 0.1} | options))


def test_an_unknown_optimizer_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"did you mean 'adam'\? known: adam, sgd"):
        options_for_optimizer("adamw")
