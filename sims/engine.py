"""Ray for one run: a Ray of its own on this machine, or a cluster that runs already."""

import contextlib
import math
import os
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sims
from fedsbc.config import Config, to_json

from . import signals
from .probe import measured_machine
from .resources import Device, Machine, describe_fit, device_of, fit_actors, this_machine
from .scratch import RAY

if TYPE_CHECKING:
    from .actor import NodeConfig
    from .fleet import Fleet
    from .nodes import Node

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Ray's own 15 lets whatever else runs here go first. Actors do the work of the run: they get
    # the priority that its command has.
    "RAY_worker_niceness": "0",
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "OMP_NUM_THREADS": "1",
    # cuBLAS gives the same bytes again only with a workspace of fixed size.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    # Large blocks stay in the process: a training step asks for the same ones again and again.
    "MALLOC_MMAP_THRESHOLD_": "268435456",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
}
"""For the actors, which inherit it; what the user has set is left alone."""

MARK = "FEDSBC_RAY"
"""Environment variable by which Ray's processes are known."""

OBJECT_STORE_BYTES = 256 * 2**20
"""Replies pass through it; weights and states do not."""

ROOT = str(Path(sims.__file__).parent.parent)


class Engine(ABC):
    """Where actors run.

    Args:
        config: the experiment.
        sample_shape: (channels, height, width) of its data.
    """

    def __init__(self, config: Config, sample_shape: Sequence[int]) -> None:
        self.config, self.sample_shape = config, sample_shape
        self._out = self._scratch = Path()

    @contextlib.contextmanager
    def running(self, out: Path, scratch: Path) -> Iterator[None]:
        """Have Ray for a while.

        Args:
            out: the run folder.
            scratch: folder for the run's files on this machine.
        """
        self._out, self._scratch = out, scratch
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        with self._ray():
            yield

    @abstractmethod
    def _ray(self) -> contextlib.AbstractContextManager[None]:
        """Start or join Ray, and stop or leave it."""

    @abstractmethod
    def fleet(self, run_config: "NodeConfig") -> "Fleet":
        """Return the sites that there are, with their actors counted."""

    @abstractmethod
    def num_nodes_left(self) -> int:
        """Return how many nodes can go on."""

    def _actor_maker(
        self, run_config: "NodeConfig", device: Device, gpu_share: float, node: "Node | None" = None
    ) -> Any:
        """Return what starts an actor on a node, or wherever Ray likes."""
        import ray

        from .actor import ClientActor, NodeConfig

        engine, more = self.config.engine, NodeConfig(device=device)
        if device == "cuda":
            more["gpu-share"] = gpu_share
        if self.config.record.deltas:
            more["record-dir"] = str(self._out.resolve() / "deltas")
        num_gpus = engine.gpus_per_actor if device == "cuda" else 0
        remote = ray.remote(num_cpus=engine.cpus_per_actor, num_gpus=num_gpus)(ClientActor)
        if node is not None:
            remote = remote.options(scheduling_strategy=node.strategy())

        def make(node_config: NodeConfig, counter: Path) -> Any:
            return remote.remote(run_config, node_config | more, counter)

        return make


class OwnRay(Engine):
    """Starts Ray on this machine for the run alone."""

    def __init__(self, config: Config, sample_shape: Sequence[int]) -> None:
        super().__init__(config, sample_shape)
        machine = this_machine(config)
        self._device = device_of(config, [machine])
        if self._device == "cuda":
            machine = measured_machine(machine, to_json(config), sample_shape)
        self._machine = machine
        (self._num_actors,) = fit_actors(config, [machine], self._device)
        line = describe_fit(config, [machine], self._device, [self._num_actors])
        print(line, file=sys.stderr)

    @contextlib.contextmanager
    def _ray(self) -> Iterator[None]:
        """Start Ray, and stop it; its sockets need a short path."""
        os.environ["PYTHONPATH"] = os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")])
        import ray

        from .ray_private import only_what_a_run_needs, stop

        folder = tempfile.mkdtemp(prefix="fedsbc-")
        os.environ[MARK] = folder
        try:
            (self._scratch.parent / RAY).symlink_to(folder)
            with signals.kept(), only_what_a_run_needs():
                ray.init(
                    num_cpus=max(
                        1, math.ceil(self._num_actors * self.config.engine.cpus_per_actor)
                    ),
                    object_store_memory=OBJECT_STORE_BYTES,
                    include_dashboard=False,
                    configure_logging=False,
                    log_to_driver=False,
                    _temp_dir=folder,
                )
            signals.check()
            yield
        finally:
            stop(f"{MARK}={folder}")
            del os.environ[MARK]
            shutil.rmtree(folder, ignore_errors=True)

    def fleet(self, run_config: "NodeConfig") -> "Fleet":
        """Return the one site."""
        from .fleet import Fleet
        from .ray_private import check_head
        from .sites import LocalSite

        share = gpu_share(self._machine, self._num_actors)
        make = self._actor_maker(run_config, self._device, share)
        site = LocalSite(self._num_actors, self._scratch, make)
        return Fleet([site], self.config.clients.count, lambda has_died: check_head())

    def num_nodes_left(self) -> int:
        """Return one."""
        return 1


def engine_for(config: Config, sample_shape: Sequence[int]) -> Engine:
    """Return the engine that a config asks for.

    Raises:
        ConfigError: it cannot be had; nothing was started.
    """
    if config.engine.address is None:
        return OwnRay(config, sample_shape)
    from .cluster_engine import JoinedCluster

    return JoinedCluster(config, sample_shape)


def gpu_share(machine: Machine, num_actors: int) -> float:
    """Return the share of a GPU's memory that each actor of a machine may take, in (0, 1]."""
    return 1 / max(1, math.ceil(num_actors / max(1, machine.gpus)))
