import pytest
import torch

from fedsbc import models
from fedsbc.errors import ConfigError
from fedsbc.flat_model import FlatModel


@pytest.mark.parametrize("name", models.names())
def test_every_model_builds_the_same_from_the_same_seed(name):
    options = models.options_for(name)()
    first, again, other = (FlatModel(models.build(options, seed)) for seed in (1, 1, 2))
    assert (first.weights == again.weights).all()
    assert (first.weights != other.weights).any()
    assert first.module(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    assert first.module.training


def test_build_leaves_torchs_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    models.build(models.options_for("mlp")(), seed=0)
    assert torch.equal(torch.rand(3), expected)


def test_lenet5_caffe_has_the_papers_size():
    model = FlatModel(models.build(models.options_for("lenet5-caffe")(), 0))
    assert model.num_params == 431_080


@pytest.mark.parametrize(
    ("hidden", "num_params"),
    [(64, 784 * 64 + 64 + 64 * 10 + 10), ([8, 4], 784 * 8 + 8 + 8 * 4 + 4 + 4 * 10 + 10)],
)
def test_mlp_takes_one_size_or_a_list(hidden, num_params):
    options = models.options_for("mlp")(hidden=hidden)
    assert FlatModel(models.build(options, 0)).num_params == num_params


@pytest.mark.parametrize("name", models.names())
def test_every_model_takes_colour_images(name):
    options = models.options_for(name)(input_shape=[3, 32, 32], num_classes=7)
    assert models.build(options, 0)(torch.zeros(2, 3, 32, 32)).shape == (2, 7)


def test_an_unknown_model_is_an_error_with_the_near_miss_and_the_known_ones():
    with pytest.raises(ConfigError, match=r"did you mean 'lenet5-caffe'\? known: cnn-bn, lenet5"):
        models.options_for("lenet5-cafe")


@pytest.mark.parametrize("name", ["lenet5-caffe", "cnn-bn"])
def test_an_input_that_is_too_small_is_one_clear_line(name):
    options = models.options_for(name)(input_shape=[1, 4, 4])
    with pytest.raises(ConfigError, match=r"cannot take samples of shape \[1, 4, 4\]") as caught:
        models.build(options, 0)
    assert "\n" not in str(caught.value)


def test_a_model_that_does_not_fit_the_data_is_refused_with_the_remedy():
    options = models.options_for("mlp")()
    models.check_data(options, (1, 28, 28), 10)
    with pytest.raises(ConfigError, match=r"set model\.input_shape to \[3, 32, 32\]"):
        models.check_data(options, (3, 32, 32), 10)
    with pytest.raises(ConfigError, match=r"set model\.num_classes to 11"):
        models.check_data(options, (1, 28, 28), 11)
