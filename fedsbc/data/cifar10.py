"""`cifar10`: 32 x 32 colour images, from lossless WebP sheets in one zip file."""

import io
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsbc.data.base import DataOptions, DataSet
from fedsbc.data.files import check, find
from fedsbc.errors import DataError

SHEET_SHAPE = (25, 32, 40, 32, 3)
"""A sheet of 1000 images: 25 rows of 40, each image 32 x 32 x 3."""


class Cifar10Options(DataOptions):
    """Options of `cifar10`: the file `cifar10_webp.zip`, 50000 and 10000 x 32 x 32 x 3."""

    name: Literal["cifar10"] = "cifar10"


def load(options: Cifar10Options) -> DataSet:
    """Load CIFAR-10: x uint8 (50000 and 10000, 32, 32, 3).

    Raises:
        DataError: the file is missing or is not what it should be, or Pillow is not installed.
    """
    path = find(options.name, options.path, "cifar10_webp.zip")
    pillow = _pillow()
    try:
        with zipfile.ZipFile(path) as file:
            arrays = {
                key: _labels(file, key) if key.startswith("y") else _images(file, key, pillow)
                for key in ("x_train", "y_train", "x_test", "y_test")
            }
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise DataError(f"{path} is not a zip of CIFAR-10 sheets: {error}") from error
    check(arrays, str(path))
    return DataSet(
        options.name,
        **arrays,
        num_classes=10,
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
    )


def _pillow() -> ModuleType:
    """Return Pillow's image module, which is no dependency of ours."""
    try:
        from PIL import Image
    except ImportError as error:
        raise DataError("data set 'cifar10' is read with Pillow: pip install pillow") from error
    return Image


def _images(file: zipfile.ZipFile, folder: str, pillow: ModuleType) -> NDArray[Any]:
    """Return the images of all sheets in a folder, uint8, shape (N, 32, 32, 3)."""
    sheets = sorted(n for n in file.namelist() if Path(n).parent.name == folder)
    images = np.empty((1000 * len(sheets), 32, 32, 3), np.uint8)
    for number, name in enumerate(sheets):
        with pillow.open(io.BytesIO(file.read(name))) as sheet:
            tiles = np.asarray(sheet.convert("RGB")).reshape(SHEET_SHAPE)
        block = images[1000 * number : 1000 * (number + 1)]
        block[...] = tiles.swapaxes(1, 2).reshape(1000, 32, 32, 3)
    return images


def _labels(file: zipfile.ZipFile, key: str) -> NDArray[Any]:
    """Return the labels of one part, integers of shape (N,)."""
    labels: NDArray[Any] = np.load(io.BytesIO(file.read(f"{key}.npy")), allow_pickle=False)
    return labels
