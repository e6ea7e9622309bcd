"""LeNet5-Caffe: the MNIST model of the SBC paper.

Source: Sattler et al., arXiv 1805.08768, experiments; 20C5-MP2-50C5-MP2-500FC-10, 431,080
parameters. As in Caffe's LeNet there is one ReLU, after the 500 units.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Literal

from fedsbc.models.base import ModelOptions

if TYPE_CHECKING:
    from torch import nn


class LeNet5CaffeOptions(ModelOptions):
    """Options of `lenet5-caffe`; height and width are at least 16."""

    name: Literal["lenet5-caffe"] = "lenet5-caffe"


def make(options: LeNet5CaffeOptions) -> "nn.Module":
    """Return the model, initialised from torch's global generator."""
    from torch import nn

    channels, height, width = options.input_shape
    num_features = 50 * _pooled(height) * _pooled(width)
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(channels, 20, 5),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(20, 50, 5),
            pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            fc1=nn.Linear(num_features, 500),
            relu=nn.ReLU(),
            fc2=nn.Linear(500, options.num_classes),
        )
    )


def _pooled(side: int) -> int:
    """Return what two blocks of convolution and pooling leave of a side."""
    return ((side - 4) // 2 - 4) // 2
