"""What a process builds once and uses for every client that it plays: model, trainer, data."""

import functools
import os
import sys
import threading
from pathlib import Path

import numpy as np
import torch
from flwr.app import Context
from numpy.typing import NDArray

from fedsbc import data, models
from fedsbc.arrays import aligned_vector
from fedsbc.config import Config
from fedsbc.data import DataSet, partition
from fedsbc.data.device import load_device_file
from fedsbc.data.mapped import read_train
from fedsbc.errors import ConfigError
from fedsbc.experiment import CONFIG_KEYS, config_of, upstream_compressor
from fedsbc.flat_model import FlatModel
from fedsbc.partition_files import read_parts
from fedsbc.state import StateHome
from fedsbc.training import Trainer

from .context_home import ContextHome
from .device_memory import DeviceMemory, Part
from .homes import MAX_BYTES, Homes, max_homes

LOCK = threading.Lock()
"""One client at a time per process: they share the model. Engines use processes, not threads."""


class Worker:
    """The long-lived parts of a client process.

    Args:
        experiment: the resolved config.
        partition_file: `.npy` files of rows per client, made by the engine; None to split here.
        own_data: a device's own samples, a file or the name of a data set; None: the experiment's.
        data_dir: folder with the experiment's train set, written once by the engine for all
            processes of a machine; None to load it here.
        device: where the model is trained, `cpu` or `cuda`.
        gpu_share: this process's part of the GPU's memory.
    """

    def __init__(
        self,
        experiment: Config,
        partition_file: Path | None,
        own_data: str | None = None,
        data_dir: Path | None = None,
        device: str = "cpu",
        gpu_share: float = 1.0,
    ) -> None:
        torch.set_num_threads(1)  # one and two threads give different bytes
        self.config = experiment
        self._holds_own_file = own_data is not None and own_data not in data.names()
        self.data = read_train(data_dir) if data_dir else _data_of(experiment, own_data)
        self.memory = DeviceMemory(torch.device(device), gpu_share=gpu_share)
        self.model = FlatModel(models.build(experiment.model, experiment.seed), device)
        self.initial_buffers = self.model.buffers.copy()
        clients = experiment.clients
        self.trainer = Trainer(self.model, clients, local_epochs=clients.local_epochs)
        self.change = aligned_vector(self.model.num_params) if device == "cpu" else None
        """Where the change of a client goes, and then its residual: memory that the cache knows."""
        self.compressor = upstream_compressor(experiment)
        if self._holds_own_file:
            self._parts = []
        else:
            self._parts = read_parts(partition_file) if partition_file else self._split()

    def _split(self) -> list[NDArray[np.int64]]:
        count = self.config.clients.count
        options = self.config.data.partition
        return partition.split(options, self.data.y_train, count, self.config.seed)

    @property
    def averages_buffers(self) -> bool:
        """Whether float buffers travel: the model has some, and they are averaged."""
        return self.config.model.buffers == "average" and self.model.buffer_layout.size > 0

    def rows(self, client_id: int) -> NDArray[np.int64]:
        """Return the rows of the training set that a client holds, sorted int64."""
        if self._holds_own_file:
            return np.arange(len(self.data.y_train))
        if not 0 <= client_id < len(self._parts):
            raise ConfigError(
                f"partition-id {client_id}: this run has clients 0 to {len(self._parts) - 1}; "
                "start as many nodes as `clients.count` says"
            )
        return self._parts[client_id]

    def samples(self, client_id: int) -> Part:
        """Return samples and labels, and which of their rows a client holds."""
        rows = self.rows(client_id)
        return self.memory.part(client_id, rows, self.data.train_images, self.data.y_train)


def _data_of(experiment: Config, own_data: str | None) -> DataSet:
    """Return the data of a process: the experiment's, a named set, or a file of the device."""
    if own_data is None:
        return data.load(experiment.data)
    if own_data in data.names():
        return data.load(data.options_for(own_data)())  # type: ignore[call-arg]  # has a name
    return load_device_file(Path(own_data).expanduser())


@functools.lru_cache(maxsize=1)
def _worker(
    run_config: tuple[tuple[str, str], ...],
    partition_file: str,
    own_data: str,
    data_dir: str,
    device: str,
    gpu_share: str,
) -> Worker:
    config = config_of(dict(run_config))
    return Worker(
        config,
        Path(partition_file) if partition_file else None,
        own_data or None,
        Path(data_dir) if data_dir else None,
        device or device_here(config),
        float(gpu_share or 1.0),
    )


def device_here(config: Config) -> str:
    """Return where a node trains that its engine tells nothing: on a GPU, if it sees one.

    Under Flower's simulation it must hold a share of one too: Ray says so by a variable.

    Raises:
        ConfigError: `device: cuda` without one.
    """
    may_have = "ray" not in sys.modules or bool(os.environ.get("CUDA_VISIBLE_DEVICES"))
    has_gpu = config.engine.device != "cpu" and may_have and torch.cuda.is_available()
    if config.engine.device == "cuda" and not has_gpu:
        raise ConfigError(
            "engine.device: cuda, but this node sees no CUDA device; use engine.device: auto, "
            "which takes the CPU then"
        )
    return "cuda" if has_gpu else "cpu"


def worker_of(context: Context) -> Worker:
    """Return this process's worker for the experiment of a context; built at the first call."""
    run_config = tuple((key, str(context.run_config.get(key) or "")) for key in CONFIG_KEYS)
    names = ("partition-file", "data", "data-dir", "device", "gpu-share")
    return _worker(run_config, *(str(context.node_config.get(n, "")) for n in names))


def client_id_of(context: Context) -> int:
    """Return the client id of a node: its `partition-id`.

    Raises:
        ConfigError: the node config has none.
    """
    value = context.node_config.get("partition-id")
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(
            f"node config: partition-id is {value!r}; expected a whole number. "
            "Start the node with --node-config 'partition-id=0 num-partitions=2'"
        )
    return value


@functools.cache
def _homes() -> Homes:
    return Homes(MAX_BYTES, max_homes())


def home_of(context: Context, run_id: str, client_id: int) -> StateHome:
    """Return the home of a client's state that the engine asks for in the node config.

    `state-dir` names a folder (`state-durable` also survives the loss of power); without it the
    state lives in `context.state`.
    """
    folder = context.node_config.get("state-dir")
    if folder is None:
        return ContextHome(context.state, run_id)
    durable = bool(context.node_config.get("state-durable", False))
    return _homes().home((str(folder), run_id, client_id, durable))
