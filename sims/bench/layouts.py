"""The layouts that are measured."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from fedsbc.layout import Layout

LayoutName: TypeAlias = Literal["one", "resnet50", "lenet5-caffe"]

_STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))
"""Stages of ResNet-50: number of blocks, width of a block's 3x3 convolution."""

_EXPANSION = 4
"""A block puts out this many times its width."""

Shape: TypeAlias = tuple[str, tuple[int, ...]]


def layout_of(name: LayoutName, size: int) -> Layout:
    """Return a layout by name.

    Args:
        name: `one` tensor of `size` entries, the 161 of ResNet-50, or the 8 of LeNet5-Caffe.
        size: entries of the one tensor; the others have their own.
    """
    if name == "one":
        return Layout.of([("matrix", (1, size))])  # two dimensions: some schemes look at that
    return Layout.of(_resnet50() if name == "resnet50" else _lenet5_caffe())


def _lenet5_caffe() -> Iterator[Shape]:
    yield from (("conv1.weight", (20, 1, 5, 5)), ("conv1.bias", (20,)))
    yield from (("conv2.weight", (50, 20, 5, 5)), ("conv2.bias", (50,)))
    yield from (("fc1.weight", (500, 800)), ("fc1.bias", (500,)))
    yield from (("fc2.weight", (10, 500)), ("fc2.bias", (10,)))


def _resnet50() -> Iterator[Shape]:
    """Yield the parameters of ResNet-50 for 1000 classes, 25,557,032 entries.

    Source: He et al., "Deep Residual Learning for Image Recognition" (arXiv 1512.03385), Table 1.
    """
    yield from _convolution("stem", 64, 3, 7)
    channels = 64
    for stage, (num_blocks, width) in enumerate(_STAGES, start=1):
        for block in range(num_blocks):
            name = f"stage{stage}.{block}"
            yield from _convolution(f"{name}.reduce", width, channels, 1)
            yield from _convolution(f"{name}.filter", width, width, 3)
            yield from _convolution(f"{name}.expand", _EXPANSION * width, width, 1)
            if block == 0:
                yield from _convolution(f"{name}.shortcut", _EXPANSION * width, channels, 1)
            channels = _EXPANSION * width
    yield from (("classes.weight", (1000, channels)), ("classes.bias", (1000,)))


def _convolution(name: str, outputs: int, inputs: int, side: int) -> Iterator[Shape]:
    """Yield a convolution without bias and its batch normalisation."""
    yield f"{name}.conv", (outputs, inputs, side, side)
    yield from ((f"{name}.norm.weight", (outputs,)), (f"{name}.norm.bias", (outputs,)))
