"""The train set in mapped files: the same floats and alignment, no copy of one's own."""

import mmap

import numpy as np
import pytest

from fedsbc.arrays import ALIGNMENT_BYTES
from fedsbc.data import DataSet
from fedsbc.data import mapped as files
from fedsbc.data.mapped import read_train, write_train

RNG = np.random.default_rng(5)


def data_set(x):
    y = RNG.integers(0, 10, len(x))
    channels = 3 if x.shape[-1] == 3 else 1
    return DataSet("d", x, y, x[:1], y[:1], 10, (0.1307,) * channels, (0.3081,) * channels)


@pytest.mark.parametrize(
    "x",
    [
        RNG.integers(0, 256, (301, 28, 28), np.uint8),
        RNG.integers(0, 256, (50, 8, 8, 3), np.uint8),
        RNG.standard_normal((33, 1, 7, 5), np.float32),
    ],
    ids=["grey", "colour", "float32"],
)
def test_the_mapped_floats_are_those_of_the_data_set(tmp_path, monkeypatch, x):
    # pitfall 2
    monkeypatch.setattr(files, "ROWS_AT_ONCE", 32)
    data = data_set(x)
    write_train(tmp_path, data)
    train = read_train(tmp_path)
    assert train.train_images.tobytes() == data.train_images.tobytes()
    assert train.train_images.shape == data.train_images.shape
    assert train.train_images.dtype == np.float32
    assert np.array_equal(train.y_train, data.y_train)
    assert train.train_images.ctypes.data % ALIGNMENT_BYTES == 0
    assert not train.train_images.flags.writeable
    owner = train.train_images
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    assert isinstance(owner.base, mmap.mmap), "no process has a copy"
