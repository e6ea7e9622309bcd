"""A data set dealt out to devices: one file for each, with its own samples alone."""

from pathlib import Path

from fedsbc import data
from fedsbc.config import Config
from fedsbc.data import partition
from fedsbc.data.device import write_device_file


def write_device_files(config: Config, folder: Path) -> list[Path]:
    """Write `client-00000.npz` and so on and return the files in the order of client ids.

    Args:
        config: the data set, its partition, the number of clients and the seed.
        folder: made here if need be.

    Raises:
        DataError: the data set or the partition cannot be had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    data_set, count = data.load(config.data), config.clients.count
    parts = partition.split(config.data.partition, data_set.y_train, count, config.seed)
    files = []
    for client_id, rows in enumerate(parts):
        files.append(folder / f"client-{client_id:05d}.npz")
        write_device_file(files[-1], data_set, rows)
    return files
