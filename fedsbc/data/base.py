"""A data set in memory, and what every data set has in a config."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import aligned_vector
from fedsbc.options import Options

if TYPE_CHECKING:
    import torch

Images = NDArray[np.float32]
"""Normalised samples, float32, shape (N, channels, height, width), 64-byte aligned."""

Labels = NDArray[np.int64]
"""Class numbers from 0, int64, shape (N,)."""


class DataOptions(Options):
    """Options of a data set beside its own.

    Attributes:
        name: the data set; subclasses narrow it to a `Literal`.
        path: its file, or the folder that holds it; null: the folder in the environment
            variable `FEDSBC_DATA`. A data set that comes with the package needs neither.
    """

    name: str
    path: str | None = None


@dataclass(frozen=True, eq=False)
class DataSet:
    """Images and labels as they are stored, and normalised on request.

    Attributes:
        name: its name in configs.
        x_train: uint8 from 0 to 255, shape (N, height, width[, channels]); or float32, which is
            taken as normalised, shape (N, channels, height, width).
        y_train: class numbers from 0, int64, shape (N,).
        x_test: as `x_train`.
        y_test: as `y_train`.
        num_classes: number of classes.
        mean: of the train pixels in [0, 1], one for each channel.
        std: standard deviation of the train pixels in [0, 1], one for each channel.
    """

    name: str
    x_train: NDArray[Any]
    y_train: Labels
    x_test: NDArray[Any]
    y_test: Labels
    num_classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def sample_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of one sample, as a model takes it."""
        shape = self.x_train.shape[1:]
        if self.x_train.dtype != np.uint8:
            channels, height, width = shape
        else:
            height, width, channels = shape if len(shape) == 3 else (*shape, 1)
        return channels, height, width

    @cached_property
    def train_images(self) -> Images:
        """The train samples, normalised; made once, 4 bytes for each pixel."""
        return normalise(self.x_train, self.mean, self.std)

    @cached_property
    def test_images(self) -> Images:
        """The test samples, normalised; made once, 4 bytes for each pixel."""
        return normalise(self.x_test, self.mean, self.std)

    def train_tensors(self) -> "tuple[torch.Tensor, torch.Tensor]":
        """Return `train_images` and `y_train` as tensors of the same memory."""
        from fedsbc.flat_model import as_tensor

        return as_tensor(self.train_images), as_tensor(self.y_train)

    def test_tensors(self) -> "tuple[torch.Tensor, torch.Tensor]":
        """Return `test_images` and `y_test` as tensors of the same memory."""
        from fedsbc.flat_model import as_tensor

        return as_tensor(self.test_images), as_tensor(self.y_test)


def normalise(x: NDArray[Any], mean: tuple[float, ...], std: tuple[float, ...]) -> Images:
    """Return (x / 255 - mean) / std in float32, channels first, 64-byte aligned.

    Each of the three operations is rounded once, in place: the same floats on every machine, and
    no temporary beside the result.

    Args:
        x: uint8, shape (N, height, width[, channels]); float32 samples are copied as they are.
        mean: of the pixels in [0, 1], one for each channel.
        std: standard deviation of the pixels in [0, 1], one for each channel.
    """
    if x.dtype != np.uint8:
        return _aligned_copy(x)
    images = _aligned_copy(x[:, None] if x.ndim == 3 else np.moveaxis(x, -1, 1))
    images /= np.float32(255)
    images -= np.asarray(mean, np.float32)[:, None, None]
    images /= np.asarray(std, np.float32)[:, None, None]
    return images


def _aligned_copy(x: NDArray[Any]) -> Images:
    """Return a float32 copy of the same shape, contiguous and aligned."""
    images = aligned_vector(x.size).reshape(x.shape)
    images[...] = x
    return images
