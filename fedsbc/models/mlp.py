"""A plain perceptron with ReLU between its layers."""

from collections import OrderedDict
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from fedsbc.models.base import ModelOptions
from fedsbc.options import PositiveInt

if TYPE_CHECKING:
    from torch import nn


class MlpOptions(ModelOptions):
    """Options of `mlp`.

    Attributes:
        hidden: units of the hidden layer, or a list of them, one entry a layer.
    """

    name: Literal["mlp"] = "mlp"
    hidden: PositiveInt | Annotated[list[PositiveInt], Field(min_length=1)] = 64


def make(options: MlpOptions) -> "nn.Module":
    """Return the model, initialised from torch's global generator."""
    from torch import nn

    hidden = [options.hidden] if isinstance(options.hidden, int) else options.hidden
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    for number, (inputs, units) in enumerate(pairwise([prod(options.input_shape), *hidden]), 1):
        layers[f"fc{number}"] = nn.Linear(inputs, units)
        layers[f"relu{number}"] = nn.ReLU()
    layers["out"] = nn.Linear(hidden[-1], options.num_classes)
    return nn.Sequential(layers)
