"""Data sets: a table of names. A new one is a file with options and a loader, and a line here."""

from collections.abc import Callable
from typing import Any

from fedsbc.choices import choose
from fedsbc.data import cifar10, mnist5k, npz
from fedsbc.data.base import DataOptions, DataSet, normalise

__all__ = ["TABLE", "DataOptions", "DataSet", "load", "names", "normalise", "options_for"]

TABLE: dict[str, tuple[type[DataOptions], Callable[[Any], DataSet]]] = {
    "cifar10": (cifar10.Cifar10Options, cifar10.load),
    "fashion-mnist": (npz.FashionMnistOptions, npz.load_fashion_mnist),
    "mnist": (npz.MnistOptions, npz.load_mnist),
    "mnist-5k": (mnist5k.Mnist5kOptions, mnist5k.load),
    "npz": (npz.NpzOptions, npz.load_npz),
}
"""The data sets by their names in configs: options class and loader."""


def names() -> list[str]:
    """Return the names of the known data sets, sorted."""
    return sorted(TABLE)


def options_for(name: str) -> type[DataOptions]:
    """Return the options class of the data set of that name.

    Raises:
        ConfigError: no such data set; the message lists the known ones.
    """
    return choose("data set", name, TABLE)[0]


def load(options: DataOptions) -> DataSet:
    """Load a data set into memory.

    Raises:
        ConfigError: no such data set.
        DataError: its file is missing or is not what it should be; the message says what to do.
    """
    return choose("data set", options.name, TABLE)[1](options)
