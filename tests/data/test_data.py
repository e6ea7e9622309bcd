import json
import sys
import zipfile

import numpy as np
import pytest
import torch

from fedsbc import data
from fedsbc.arrays import ALIGNMENT_BYTES
from fedsbc.data import cifar10, mnist5k
from fedsbc.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def digits():
    return data.load(data.options_for("mnist-5k")())


def write_npz(path, **changes):
    arrays = {
        "x_train": np.arange(4 * 6 * 5, dtype=np.uint8).reshape(4, 6, 5),
        "y_train": np.array([0, 1, 2, 1], np.uint8),
        "x_test": np.zeros((2, 6, 5), np.uint8),
        "y_test": np.array([2, 0], np.uint8),
    } | changes
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return str(path)


def test_mnist_5k_comes_with_the_package(digits):
    assert digits.x_train.shape == (4000, 28, 28)
    assert digits.x_test.shape == (1000, 28, 28)
    assert digits.x_train.dtype == np.uint8
    assert digits.y_train.dtype == digits.y_test.dtype == np.int64
    assert np.bincount(digits.y_train).tolist() == [400] * 10
    assert np.bincount(digits.y_test).tolist() == [100] * 10
    assert digits.sample_shape == (1, 28, 28)


def test_the_file_says_where_it_comes_from():
    packed = json.loads(mnist5k.FILE.read_text("utf-8"))
    assert "MNIST" in packed["origin"]
    assert "BSD" in packed["licence"]


def test_a_file_that_was_changed_is_refused(tmp_path, monkeypatch):
    packed = json.loads(mnist5k.FILE.read_text("utf-8"))
    flipped = "B" if packed["npz_base64"][1000] == "A" else "A"
    packed["npz_base64"] = packed["npz_base64"][:1000] + flipped + packed["npz_base64"][1001:]
    monkeypatch.setattr(mnist5k, "FILE", tmp_path / "changed.json")
    mnist5k.FILE.write_text(json.dumps(packed))
    with pytest.raises(DataError, match="sha256 differs"):
        data.load(data.options_for("mnist-5k")())


def test_images_are_normalised_once_and_aligned(digits):
    images = digits.train_images
    assert images is digits.train_images
    assert images.ctypes.data % ALIGNMENT_BYTES == 0
    expected = (digits.x_train[:3] / 255 - 0.1307) / 0.3081
    np.testing.assert_allclose(images[:3, 0], expected, atol=1e-6)
    assert abs(images.mean()) < 0.01
    assert abs(images.std() - 1) < 0.01


def test_tensors_are_the_same_memory(digits):
    x, y = digits.test_tensors()
    assert x.data_ptr() == digits.test_images.ctypes.data
    assert (x.dtype, y.dtype) == (torch.float32, torch.int64)


def test_colour_images_become_channels_first():
    x = np.random.default_rng(0).integers(0, 256, (2, 4, 5, 3), dtype=np.uint8)
    images = data.normalise(x, (0.1, 0.2, 0.3), (1.0, 2.0, 4.0))
    assert images.shape == (2, 3, 4, 5)
    np.testing.assert_allclose(images[1, 2], (x[1, :, :, 2] / 255 - 0.3) / 4, atol=1e-6)


def test_float_samples_are_taken_as_they_are():
    x = np.random.default_rng(0).normal(size=(2, 1, 3, 3)).astype(np.float32)
    assert (data.normalise(x, (0.5,), (0.5,)) == x).all()


def test_a_file_of_ones_own(tmp_path):
    path = write_npz(tmp_path / "mine.npz")
    loaded = data.load(data.options_for("npz")(path=path, mean=[0.0], std=[1.0]))
    assert loaded.sample_shape == (1, 6, 5)
    assert loaded.num_classes == 3
    assert loaded.train_images[1, 0, 0, 0] == np.float32(30) / np.float32(255)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_test": None}, "no array 'y_test'"),
        ({"y_train": np.zeros(3, np.uint8)}, r"y_train is uint8 of shape \(3,\), expected 4"),
        ({"y_train": np.array([0, 1, 2, 9])}, "labels from 0 to 9, expected 0 to 4"),
        ({"y_train": np.array([0, -1, 2, 1])}, "labels from -1 to 2"),
        ({"x_train": np.zeros((4, 6, 5))}, "x_train is float64"),
        ({"y_train": np.array([{}, 1, 2, 3], object)}, "without pickles"),
        (
            {"x_train": np.zeros((0, 6, 5), np.uint8), "y_train": np.zeros(0, np.uint8)},
            "no train samples",
        ),
        ({"x_train": np.zeros((4, 6, 5, 2), np.uint8)}, "2 channels"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused(tmp_path, changes, message):
    path = write_npz(tmp_path / "bad.npz", **changes)
    with pytest.raises(DataError, match=message):
        data.load(data.options_for("npz")(path=path, num_classes=5))


def test_a_file_that_is_no_npz_is_refused(tmp_path):
    (tmp_path / "mnist.npz").write_bytes(b"not a zip")
    with pytest.raises(DataError, match=r"cannot be read as \.npz"):
        data.load(data.options_for("mnist")(path=str(tmp_path)))


def test_the_folder_of_the_environment_is_looked_at(tmp_path, monkeypatch):
    write_npz(tmp_path / "fashion_mnist.npz")
    monkeypatch.setenv("FEDSBC_DATA", str(tmp_path))
    assert len(data.load(data.options_for("fashion-mnist")()).y_train) == 4


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
def test_a_missing_file_says_what_to_do(name, tmp_path, monkeypatch):
    monkeypatch.delenv("FEDSBC_DATA", raising=False)
    with pytest.raises(DataError, match=r"set data\.path to the file .* or FEDSBC_DATA"):
        data.load(data.options_for(name)())
    with pytest.raises(DataError, match="there is no file"):
        data.load(data.options_for(name)(path=str(tmp_path / "nowhere")))


def test_cifar10_sheets_are_read_in_order(tmp_path):
    image = pytest.importorskip("PIL.Image")
    tiles = np.random.default_rng(0).integers(0, 256, (1000, 32, 32, 3), dtype=np.uint8)
    sheet = tiles.reshape(25, 40, 32, 32, 3).swapaxes(1, 2).reshape(800, 1280, 3)
    image.fromarray(sheet).save(tmp_path / "sheet.webp", lossless=True)
    np.save(tmp_path / "y.npy", np.arange(1000) % 10)
    with zipfile.ZipFile(tmp_path / "cifar10_webp.zip", "w") as file:
        for part in ("train", "test"):
            file.write(tmp_path / "sheet.webp", f"x_{part}/00.webp")
            file.write(tmp_path / "y.npy", f"y_{part}.npy")
    loaded = data.load(data.options_for("cifar10")(path=str(tmp_path)))
    assert (loaded.x_train == tiles).all()
    assert loaded.sample_shape == (3, 32, 32)


def test_without_pillow_cifar10_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "cifar10_webp.zip").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match="pip install pillow"):
        cifar10.load(cifar10.Cifar10Options(path=str(tmp_path)))


def test_an_unknown_data_set_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"did you mean 'mnist-5k'\? known: cifar10, fashion"):
        data.options_for("mnist5k")
