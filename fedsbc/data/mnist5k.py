"""`mnist-5k`: 4000 train and 1000 test digits that come with the package.

They lie in one JSON file, as base64 of a .npz beside its origin, licence and sha256: an app
bundle of Flower carries JSON and no .npz, and hides the files of the installed package.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import Literal

from fedsbc.data.base import DataOptions, DataSet
from fedsbc.data.files import check, read_npz
from fedsbc.errors import DataError

FILE = Path(__file__).with_name("mnist5k.json")


class Mnist5kOptions(DataOptions):
    """Options of `mnist-5k`; `path` stays null."""

    name: Literal["mnist-5k"] = "mnist-5k"
    path: None = None


def load(options: Mnist5kOptions) -> DataSet:
    """Load the data set: x uint8 (4000 and 1000, 28, 28), 400 and 100 of each class.

    Raises:
        DataError: the file was changed or cut.
    """
    try:
        packed = json.loads(FILE.read_text("utf-8"))
        content = base64.b64decode(packed["npz_base64"], validate=True)
        expected = packed["sha256"]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{FILE} cannot be read ({error}): install the package again") from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise DataError(f"{FILE} was changed, its sha256 differs: install the package again")
    arrays = read_npz(content, str(FILE))
    check(arrays, str(FILE))
    return DataSet(options.name, **arrays, num_classes=10, mean=(0.1307,), std=(0.3081,))
