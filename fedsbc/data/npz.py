"""Data sets in a .npz file: MNIST, Fashion-MNIST, and anything a user brings."""

from typing import Literal

from pydantic import Field

from fedsbc.data.base import DataOptions, DataSet
from fedsbc.data.files import check, find, read_npz
from fedsbc.errors import DataError
from fedsbc.options import PositiveFloat


class MnistOptions(DataOptions):
    """Options of `mnist`: the file `mnist.npz`, 60000 and 10000 x 28 x 28."""

    name: Literal["mnist"] = "mnist"


class FashionMnistOptions(DataOptions):
    """Options of `fashion-mnist`: the file `fashion_mnist.npz`, 60000 and 10000 x 28 x 28."""

    name: Literal["fashion-mnist"] = "fashion-mnist"


class NpzOptions(DataOptions):
    """Options of `npz`: a file of one's own with x_train, y_train, x_test and y_test.

    Images are uint8, shape (N, height, width[, channels]), or float32 that is normalised
    already, shape (N, channels, height, width). A device gets its data this way.

    Attributes:
        path: the file.
        mean: of the train pixels in [0, 1], one for each channel; for uint8 only.
        std: standard deviation of the train pixels, one for each channel; for uint8 only.
        num_classes: number of classes; null: one more than the largest label.
    """

    name: Literal["npz"] = "npz"
    path: str
    mean: list[float] = Field(default=[0.5], min_length=1)
    std: list[PositiveFloat] = Field(default=[0.5], min_length=1)
    num_classes: int | None = Field(default=None, ge=2)


def load_mnist(options: MnistOptions) -> DataSet:
    """Load MNIST: x uint8 (60000 and 10000, 28, 28).

    Raises:
        DataError: the file is missing or is not what it should be.
    """
    return _load(options, "mnist.npz", 10, (0.1307,), (0.3081,))


def load_fashion_mnist(options: FashionMnistOptions) -> DataSet:
    """Load Fashion-MNIST: x uint8 (60000 and 10000, 28, 28).

    Raises:
        DataError: the file is missing or is not what it should be.
    """
    return _load(options, "fashion_mnist.npz", 10, (0.2860,), (0.3530,))


def load_npz(options: NpzOptions) -> DataSet:
    """Load a user's file.

    Raises:
        DataError: the file is missing or is not what it should be.
    """
    return _load(options, "data.npz", options.num_classes, options.mean, options.std)


def _load(
    options: DataOptions,
    file_name: str,
    num_classes: int | None,
    mean: "list[float] | tuple[float, ...]",
    std: "list[float] | tuple[float, ...]",
) -> DataSet:
    """Find, read and check a file."""
    path = find(options.name, options.path, file_name)
    arrays = read_npz(path, str(path))
    check(arrays, str(path))
    labels = [arrays[key] for key in ("y_train", "y_test") if len(arrays[key])]
    lowest, highest = min(y.min() for y in labels), max(y.max() for y in labels)
    num_classes = int(highest) + 1 if num_classes is None else num_classes
    if lowest < 0 or highest >= num_classes:
        raise DataError(
            f"{path}: labels from {lowest} to {highest}, expected 0 to {num_classes - 1}"
        )
    data = DataSet(options.name, **arrays, num_classes=num_classes, mean=(*mean,), std=(*std,))
    channels = data.sample_shape[0]
    if data.x_train.dtype == "uint8" and not len(mean) == len(std) == channels:
        raise DataError(
            f"{path}: {channels} channels, but data.mean and data.std have {len(mean)} and "
            f"{len(std)} entries"
        )
    return data
