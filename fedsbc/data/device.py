"""The data of one device: a .npz file with the samples that it holds, and nothing of the others."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedsbc.data.base import DataSet
from fedsbc.data.files import check, read_npz
from fedsbc.errors import DataError

KEYS = ("x_train", "y_train", "num_classes", "mean", "std")


def write_device_file(path: Path, data: DataSet, rows: NDArray[np.int64]) -> None:
    """Write the samples of one device.

    Args:
        path: of the file, ending in .npz.
        data: where the samples come from.
        rows: the device's rows of the train set, int64.
    """
    np.savez(
        path,
        x_train=data.x_train[rows],
        y_train=data.y_train[rows],
        num_classes=np.int64(data.num_classes),
        mean=np.array(data.mean),
        std=np.array(data.std),
    )


def load_device_file(path: Path) -> DataSet:
    """Load the samples of one device; the test set is empty.

    Args:
        path: a .npz file with `x_train` (as in `DataSet`), `y_train`, `num_classes`, and `mean`
            and `std` of the pixels, one for each channel, which count for uint8 samples only.

    Raises:
        DataError: the file is missing or is not what it should be.
    """
    if not path.is_file():
        raise DataError(f"node config: data: there is no file {path}")
    arrays = read_npz(path, str(path), KEYS)
    samples = {"x_train": arrays["x_train"], "y_train": arrays["y_train"]}
    samples.update(x_test=samples["x_train"][:0], y_test=samples["y_train"][:0])
    check(samples, str(path))
    mean, std = (tuple(float(v) for v in arrays[key].reshape(-1)) for key in ("mean", "std"))
    data = DataSet(path.stem, **samples, num_classes=int(arrays["num_classes"]), mean=mean, std=std)
    highest = int(data.y_train.max())
    if data.y_train.min() < 0 or highest >= data.num_classes:
        raise DataError(f"{path}: label {highest}, expected 0 to {data.num_classes - 1}")
    return data
