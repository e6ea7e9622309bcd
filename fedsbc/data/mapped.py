"""The train set as files that every process of a machine maps: one copy of it, not one each."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedsbc.arrays import ALIGNMENT_BYTES
from fedsbc.data.base import DataSet, Images, Labels, normalise

IMAGES, LABELS = "train-images.npy", "train-labels.npy"
ROWS_AT_ONCE = 4096
"""Normalised at a time, so that the writer holds no second copy either."""


@dataclass(frozen=True, eq=False)
class TrainSet:
    """The samples that clients train on.

    Attributes:
        train_images: normalised, float32, shape (N, channels, height, width), aligned.
        y_train: class numbers, int64, shape (N,).
    """

    train_images: Images
    y_train: Labels


def write_train(folder: Path, data: DataSet) -> None:
    """Write the normalised train samples and their labels.

    Each sample is normalised by itself, so that the floats are those of `data.train_images`.
    """
    shape = (len(data.y_train), *data.sample_shape)
    images = np.lib.format.open_memmap(folder / IMAGES, "w+", np.dtype("<f4"), shape)
    for start in range(0, len(images), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        images[rows] = normalise(data.x_train[rows], data.mean, data.std)
    np.save(folder / LABELS, data.y_train)


def read_train(folder: Path) -> TrainSet:
    """Return what `write_train` wrote, as read-only views of the mapped files."""
    images, labels = (np.asarray(np.load(folder / n, mmap_mode="r")) for n in (IMAGES, LABELS))
    assert images.ctypes.data % ALIGNMENT_BYTES == 0, "numpy pads its header to 64 bytes"
    return TrainSet(images, labels)
