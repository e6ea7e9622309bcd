"""A small convolutional model with BatchNorm: for the rules on buffers."""

from collections import OrderedDict
from typing import TYPE_CHECKING, Literal

from fedsbc.models.base import ModelOptions
from fedsbc.options import PositiveInt

if TYPE_CHECKING:
    from torch import nn


class CnnBnOptions(ModelOptions):
    """Options of `cnn-bn`.

    Attributes:
        width: channels of the first convolution; the second has twice as many.
    """

    name: Literal["cnn-bn"] = "cnn-bn"
    width: PositiveInt = 8


def make(options: CnnBnOptions) -> "nn.Module":
    """Return the model, initialised from torch's global generator."""
    from torch import nn

    wide = 2 * options.width
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(options.input_shape[0], options.width, 3, stride=2, bias=False),
            norm1=nn.BatchNorm2d(options.width),
            relu1=nn.ReLU(),
            conv2=nn.Conv2d(options.width, wide, 3, stride=2, bias=False),
            norm2=nn.BatchNorm2d(wide),
            relu2=nn.ReLU(),
            pool=nn.AdaptiveAvgPool2d(2),
            flatten=nn.Flatten(),
            out=nn.Linear(4 * wide, options.num_classes),
        )
    )
