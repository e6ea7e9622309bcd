"""Finding and reading the files of data sets, with errors that say what to do."""

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsbc.errors import DataError

FOLDER_VARIABLE = "FEDSBC_DATA"
"""Environment variable with the folder of data files."""

KEYS = ("x_train", "y_train", "x_test", "y_test")
"""What a data file holds."""

Arrays = dict[str, NDArray[Any]]


def find(name: str, path: str | None, file_name: str, key: str = "data.path") -> Path:
    """Return where the file of a data set is.

    Args:
        name: what is looked for, for messages.
        path: the option `path`: a file, a folder, or null for the folder in `FEDSBC_DATA`.
        file_name: what the file is called within a folder.
        key: the config key of the option, for messages.

    Raises:
        DataError: it is not there; the message says where it was looked for and what to set.
    """
    place = path if path is not None else os.environ.get(FOLDER_VARIABLE)
    remedy = f"set {key} to the file {file_name} or its folder, or {FOLDER_VARIABLE} to it"
    if not place:
        raise DataError(f"{name!r} does not come with the package: {remedy}")
    found = Path(place).expanduser()
    found = found / file_name if found.is_dir() else found
    if not found.is_file():
        raise DataError(f"{name!r}: there is no file {found}: {remedy}")
    return found


def read_npz(source: Path | bytes, label: str, keys: tuple[str, ...] = KEYS) -> Arrays:
    """Read arrays from a .npz file or its bytes; pickled objects are refused.

    Raises:
        DataError: it cannot be read, or an array is missing.
    """
    try:
        with np.load(io.BytesIO(source) if isinstance(source, bytes) else source) as file:
            missing = [key for key in keys if key not in file]
            if missing:
                raise DataError(f"{label}: no array {missing[0]!r}, expected {', '.join(keys)}")
            return {key: file[key] for key in keys}
    except (OSError, zipfile.BadZipFile, EOFError, TypeError) as error:
        raise DataError(f"{label} cannot be read as .npz: {error}") from error
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{label} cannot be read as .npz without pickles: {error}") from error


def check(arrays: Arrays, label: str) -> None:
    """Check that samples and labels belong together, and make the labels int64 in place.

    Raises:
        DataError: no samples, other numbers of labels, or samples of a type that is not known.
    """
    for part in ("train", "test"):
        x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
        if x.dtype not in (np.uint8, np.float32) or x.ndim not in (3, 4):
            raise DataError(f"{label}: x_{part} is {x.dtype} of shape {x.shape}, expected images")
        if y.shape != x.shape[:1] or y.dtype.kind not in "ui":
            raise DataError(
                f"{label}: y_{part} is {y.dtype} of shape {y.shape}, expected {len(x)} integers"
            )
        arrays[f"y_{part}"] = y.astype(np.int64)
    if len(arrays["x_train"]) == 0:
        raise DataError(f"{label}: no train samples")
