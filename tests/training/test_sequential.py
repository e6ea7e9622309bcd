import pytest
import torch
from torch import nn
from torch.nn import functional

from fedsbc import models
from fedsbc.flat_model import FlatModel
from fedsbc.training.batches import take
from fedsbc.training.gradients import AutogradGradient
from fedsbc.training.sequential import SequentialGradient, gradient_of

SEQUENCES = {
    "lenet5-caffe": lambda: models.build(models.options_for("lenet5-caffe")(), 0),
    "mlp": lambda: models.build(models.options_for("mlp")(hidden=[9, 7]), 0),
    "strides": lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(4, 6, (3, 2), dilation=2, groups=2),
        nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
        nn.ReLU(),
        nn.Flatten(),
        nn.ReLU(),
        nn.Linear(6 * 6 * 7, 10),
    ),
    "idle layers first": lambda: nn.Sequential(
        nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(196, 10)
    ),
}


def batch(num_samples=7):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(num_samples, 1, 28, 28, generator=generator)
    return take(x, torch.arange(num_samples)), torch.arange(num_samples) % 10


@pytest.mark.parametrize("name", SEQUENCES)
def test_loss_and_gradient_are_autograds(name):
    torch.manual_seed(0)
    model = FlatModel(SEQUENCES[name]())
    x, y = batch()
    expected_loss = AutogradGradient(model)(x.clone(), y)
    expected = model.gradient.clone()
    model.gradient.fill_(float("nan"))
    written_out = gradient_of(model)
    assert isinstance(written_out, SequentialGradient)
    for num_samples in (3, 7):
        loss = written_out(*batch(num_samples))
    torch.testing.assert_close(loss, expected_loss)
    torch.testing.assert_close(model.gradient, expected)
    assert loss == pytest.approx(functional.cross_entropy(model.module(x), y).item(), rel=1e-5)


def test_the_share_of_a_sample_is_rounded_as_torch_rounds_a_number():
    module = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    model = FlatModel(module)
    written_out = gradient_of(model)
    for num_samples in (*range(1, 30), 7, 100, 101):
        x, y = batch(num_samples)
        written_out(x, y)
        shares = torch.log_softmax(module(x).detach(), 1).exp()
        shares[torch.arange(num_samples), y] -= 1
        assert torch.equal(model.gradient[-10:], (shares * (1 / num_samples)).sum(0))


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def tied():
    first, second = nn.Linear(784, 784), nn.Linear(784, 784)
    second.weight = first.weight
    return nn.Sequential(nn.Flatten(), first, second)


def repeated():
    layer = nn.Linear(784, 784)
    return nn.Sequential(nn.Flatten(), layer, layer)


def hooked():
    module = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    module[1].register_forward_hook(lambda module, inputs, output: 2 * output)
    return module


OTHERS = {
    "dropout": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 10), nn.Dropout(0.0)),
    "subclass": lambda: nn.Sequential(nn.Flatten(), Doubled(784, 10)),
    "no bias": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 10, bias=False)),
    "same padding": lambda: nn.Sequential(
        nn.Conv2d(1, 1, 3, padding="same"), nn.Flatten(), nn.Linear(784, 10)
    ),
    "nested": lambda: nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(784, 10))),
    "not flat": lambda: nn.Sequential(nn.Linear(28, 1), nn.Flatten(), nn.Linear(28, 10)),
    "tied": tied,
    "repeated": repeated,
    "hooked": hooked,
    "batchnorm": lambda: models.build(models.options_for("cnn-bn")(), 0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_anything_else_is_left_to_autograd(name):
    module = OTHERS[name]()
    x, y = batch()
    expected = torch.autograd.grad(
        functional.cross_entropy(module(x), y), list(module.parameters())
    )
    model = FlatModel(module)
    compute = gradient_of(model)
    assert isinstance(compute, AutogradGradient)
    compute(x, y)
    packed = torch.cat([gradient.flatten() for gradient in expected])
    torch.testing.assert_close(model.gradient, packed)


def test_a_parameter_that_is_not_used_has_a_gradient_of_zero():
    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.idle, self.used = nn.Linear(3, 3), nn.Linear(784, 10)

        def forward(self, x):
            return self.used(x.flatten(1))

    model = FlatModel(Partly())
    model.gradient.fill_(5)
    gradient_of(model)(*batch())
    assert (model.gradient[:12] == 0).all()
    assert (model.gradient[12:] != 0).any()
