"""Models: a table of names, and a build that is seeded and leaves torch's generator alone.

A new model is one file with an options class and a `make`, and one line in `TABLE`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fedsbc.choices import choose
from fedsbc.errors import ConfigError
from fedsbc.models import cnn_bn, lenet5_caffe, mlp
from fedsbc.models.base import ModelOptions
from fedsbc.seeds import Stream, torch_seed

if TYPE_CHECKING:
    from torch import nn

TABLE: dict[str, tuple[type[ModelOptions], Callable[[Any], "nn.Module"]]] = {
    "cnn-bn": (cnn_bn.CnnBnOptions, cnn_bn.make),
    "lenet5-caffe": (lenet5_caffe.LeNet5CaffeOptions, lenet5_caffe.make),
    "mlp": (mlp.MlpOptions, mlp.make),
}
"""The models by their names in configs: options class and maker."""


def names() -> list[str]:
    """Return the names of the known models, sorted."""
    return sorted(TABLE)


def options_for(name: str) -> type[ModelOptions]:
    """Return the options class of the model of that name.

    Raises:
        ConfigError: no such model; the message lists the known ones.
    """
    return choose("model", name, TABLE)[0]


def build(options: ModelOptions, seed: int) -> "nn.Module":
    """Build a model on the CPU in float32; the same seed gives the same weights.

    Initial weights come from (seed, `Stream.MODEL`); torch's global generator is left as it was.

    Raises:
        ConfigError: no such model, or one that cannot take the input shape asked for.
    """
    import torch

    _, make = choose("model", options.name, TABLE)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(torch_seed(seed, Stream.MODEL))
            module = make(options)
        _try_forward(module, options)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"model {options.name!r} cannot take samples of shape {options.input_shape}: {reason}"
        ) from error
    return module


def check_data(options: ModelOptions, sample_shape: Sequence[int], num_classes: int) -> None:
    """Check that a model fits the samples and labels of a data set.

    Args:
        options: the model's options.
        sample_shape: channels, height and width of one sample.
        num_classes: number of classes in the data set.

    Raises:
        ConfigError: another input shape, or fewer outputs than there are classes.
    """
    given, expected = list(options.input_shape), [int(n) for n in sample_shape]
    if given != expected:
        raise ConfigError(
            f"model.input_shape is {given} but the data set has samples of shape {expected}: "
            f"set model.input_shape to {expected}"
        )
    if options.num_classes < num_classes:
        raise ConfigError(
            f"model.num_classes is {options.num_classes} but the data set has {num_classes} "
            f"classes: set model.num_classes to {num_classes}"
        )


def _try_forward(module: "nn.Module", options: ModelOptions) -> None:
    """Run one sample of zeros through the model in evaluation mode: a wrong size shows here."""
    import torch

    module.eval()
    with torch.inference_mode():
        module(torch.zeros(1, *options.input_shape))
    module.train()
