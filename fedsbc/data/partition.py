"""Who holds which samples: partitions of a train set over clients.

Each row goes to exactly one client. A partition depends on its options, the labels, the number
of clients and the seed alone. The draws are those of flwr-datasets' partitioners, over a local
table of labels and row numbers that was shuffled first; nothing is fetched.

Empty clients: `iid`, `shards`, `pathological` and `writers` never make one, they refuse what
cannot be had. `dirichlet` draws again until each client has `min_size` samples (1 unless said
otherwise), 11 times at most, and then refuses; `min_size: 0` allows empty clients, which report
0 samples and send a change of zero.
"""

import importlib
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsbc.choices import choose
from fedsbc.data.files import find, read_npz
from fedsbc.data.partition_options import (
    DirichletOptions,
    IidOptions,
    PartitionOptions,
    PathologicalOptions,
    ShardsOptions,
    WritersOptions,
)
from fedsbc.errors import DataError
from fedsbc.seeds import Stream, generator, seed_sequence

Rows = NDArray[np.int64]
"""Row numbers of one client in the train set, int64, sorted."""


def options_for(kind: str) -> type[PartitionOptions]:
    """Return the options class of the partition of that kind.

    Raises:
        ConfigError: no such kind; the message lists the known ones.
    """
    return choose("partition", kind, TABLE)[0]


def check_counts(num_clients: int, num_samples: int) -> None:
    """Refuse what no partition can do, before anything is started.

    Raises:
        DataError: more clients than samples.
    """
    if num_clients > num_samples:
        raise DataError(f"{num_clients} clients, but only {num_samples} samples: use fewer clients")


def split(
    options: PartitionOptions, labels: NDArray[Any], num_clients: int, seed: int
) -> list[Rows]:
    """Return the rows of each client.

    Args:
        options: kind and parameters.
        labels: class of each sample, shape (N,).
        num_clients: number of clients, 1 and up.
        seed: of the run; draws come from (seed, `Stream.PARTITION`).

    Raises:
        ConfigError: no such kind.
        DataError: more clients than samples, or a partition that cannot be had as asked.
    """
    _, draw = choose("partition", options.kind, TABLE)
    check_counts(num_clients, len(labels))
    parts = [np.sort(part) for part in draw(options, labels, num_clients, seed)]
    left_out = np.setdiff1d(labels, labels[np.concatenate(parts)])
    if len(left_out):
        raise DataError(
            f"{_describe(options, num_clients)} leaves classes {left_out.tolist()} to no client: "
            f"use more clients, or kind: shards"
        )
    assert sum(map(len, parts)) == len(labels), "every row goes to one client"
    return parts


def _iid(options: IidOptions, labels: NDArray[Any], num_clients: int, seed: int) -> list[Rows]:
    """Cut the shuffled rows into equal parts, as the library does, without its seconds to load."""
    order = generator(seed, Stream.PARTITION).permutation(len(labels))
    return np.array_split(order, num_clients)


def _dirichlet(
    options: DirichletOptions, labels: NDArray[Any], num_clients: int, seed: int
) -> list[Rows]:
    partitioner = _library().DirichletPartitioner(
        num_clients,
        "label",
        alpha=options.alpha,
        min_partition_size=options.min_size,
        shuffle=False,
        seed=_library_seed(seed),
    )
    return _draw(partitioner, options, labels, num_clients, seed)


def _shards(
    options: ShardsOptions, labels: NDArray[Any], num_clients: int, seed: int
) -> list[Rows]:
    num_shards = num_clients * options.shards_per_client
    if num_shards > len(labels):
        raise DataError(f"{num_shards} shards, but only {len(labels)} samples: use fewer shards")
    partitioner = _library().ShardPartitioner(
        num_clients,
        "label",
        shard_size=len(labels) // num_shards,
        keep_incomplete_shard=True,
        shuffle=False,
        seed=_library_seed(seed),
    )
    return _draw(partitioner, options, labels, num_clients, seed)


def _pathological(
    options: PathologicalOptions, labels: NDArray[Any], num_clients: int, seed: int
) -> list[Rows]:
    partitioner = _library().PathologicalPartitioner(
        num_clients,
        "label",
        options.classes_per_client,
        class_assignment_mode="first-deterministic",
        shuffle=False,
        seed=_library_seed(seed),
    )
    return _draw(partitioner, options, labels, num_clients, seed)


def _writers(
    options: WritersOptions, labels: NDArray[Any], num_clients: int, seed: int
) -> list[Rows]:
    path = find("writers", options.path, "mnist_writers.npz", "data.partition.path")
    writers = read_npz(path, str(path), ("writer_train",))["writer_train"]
    if len(writers) != len(labels):
        raise DataError(f"{path} is about {len(writers)} samples, the data set has {len(labels)}")
    names, numbers = np.unique(writers, return_inverse=True)
    if num_clients > len(names):
        raise DataError(f"{num_clients} clients, but only {len(names)} writers: use fewer clients")
    clients = np.arange(len(names)) % num_clients
    if num_clients < len(names):
        clients = generator(seed, Stream.PARTITION).permutation(clients)
    return [np.flatnonzero(clients[numbers] == client) for client in range(num_clients)]


TABLE: dict[
    str,
    tuple[type[PartitionOptions], Callable[[Any, NDArray[Any], int, int], list[Rows]]],
] = {
    "dirichlet": (DirichletOptions, _dirichlet),
    "iid": (IidOptions, _iid),
    "pathological": (PathologicalOptions, _pathological),
    "shards": (ShardsOptions, _shards),
    "writers": (WritersOptions, _writers),
}
"""The partitions by their kinds in configs: options class and draw."""


def _draw(
    partitioner: Any,
    options: PartitionOptions,
    labels: NDArray[Any],
    num_clients: int,
    seed: int,
) -> list[Rows]:
    """Let a partitioner of flwr-datasets deal shuffled rows, shape (N,), to the clients."""
    from datasets import Dataset

    order = generator(seed, Stream.PARTITION).permutation(len(labels))
    table = Dataset.from_dict({"label": labels[order], "row": order})
    partitioner.dataset = table
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a draw that is made again, classes that are left out
            parts = [partitioner.load_partition(client)[:]["row"] for client in range(num_clients)]
    except ValueError as error:
        reason = _why(options, error)
        raise DataError(f"{_describe(options, num_clients)} cannot be had: {reason}") from error
    return [np.asarray(part, np.int64) for part in parts]


def _why(options: PartitionOptions, error: ValueError) -> str:
    """Say why a partition cannot be had, and what to do."""
    if isinstance(options, DirichletOptions):
        return (
            f"after 11 draws a client still has fewer than {options.min_size} samples; use a "
            f"larger alpha, fewer clients, or min_size: 0 to allow empty clients"
        )
    return " ".join(str(error).split())


def _describe(options: PartitionOptions, num_clients: int) -> str:
    """Name a partition with its parameters and number of clients."""
    parameters = options.model_dump(exclude={"kind"})
    listed = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return f"partition {options.kind}({listed}) over {num_clients} clients"


def _library() -> ModuleType:
    """Return flwr-datasets' partitioners; only the machine that deals the data needs them."""
    try:
        return importlib.import_module("flwr_datasets.partitioner")
    except ImportError as error:
        raise DataError(
            "partitions are drawn with flwr-datasets: pip install 'fedsbc[sim]'"
        ) from error


def _library_seed(seed: int) -> int:
    """Return the seed of a partitioner's own generator."""
    return int(seed_sequence(seed, Stream.PARTITION, 1).generate_state(1, np.uint64)[0])
