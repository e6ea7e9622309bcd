"""A run on a Ray cluster that runs already: joined, used where it is free, and left."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence

from fedsbc.config import Config, to_json
from fedsbc.errors import ConfigError, RunError

from . import cluster
from .actor import NodeConfig
from .engine import ENVIRONMENT, ROOT, Engine, gpu_share
from .fleet import Fleet
from .nodes import Node, Watch, alive, nodes_of_cluster
from .resources import Device, describe_fit, device_of, fit_actors
from .sites import LocalSite


class JoinedCluster(Engine):
    """Joins a Ray cluster; its nodes are counted anew after one was lost."""

    def __init__(self, config: Config, sample_shape: Sequence[int]) -> None:
        super().__init__(config, sample_shape)
        if config.record.deltas:
            raise ConfigError(
                "record.deltas: true writes to the run folder, which actors on other nodes cannot "
                "reach; leave out engine.address, or record.deltas"
            )
        self._nodes: list[Node] = []
        self._fleet: Fleet | None = None  # the last one
        self._device: Device | None = None  # what the run trains on, once it has begun

    @property
    def _address(self) -> str:
        assert self.config.engine.address is not None, "that is why it is joined"
        return self.config.engine.address

    @contextlib.contextmanager
    def _ray(self) -> Iterator[None]:
        """Join the cluster, and leave it."""
        variables = {name: os.environ[name] for name in ENVIRONMENT}
        variables["PYTHONPATH"] = f"{ROOT}:${{PYTHONPATH}}"
        with cluster.joined(self._address, variables):
            self._nodes = nodes_of_cluster()
            if device_of(self.config, [node.machine for node in self._nodes]) == "cuda":
                share = self.config.engine.gpus_per_actor
                self._nodes = cluster.measured(
                    self._nodes, to_json(self.config), self.sample_shape, share
                )
            try:
                yield
            finally:
                self._leave()

    def fleet(self, run_config: NodeConfig) -> Fleet:
        """Return the sites of the nodes that are alive; an earlier fleet ends here."""
        self._leave()
        self._nodes = alive(self._nodes, self._address)
        machines = [node.machine for node in self._nodes]
        device = device_of(self.config, machines)
        if self._device not in (None, device):
            raise RunError(
                f"no node with a GPU is left, and the bytes of a CPU would differ; have one again "
                f"and go on from the last checkpoint: fedsbc resume {self._out}"
            )
        actors = fit_actors(self.config, machines, device, at_most=self._device is not None)
        self._device = device
        print(describe_fit(self.config, machines, device, actors), file=sys.stderr)
        makers = [
            self._actor_maker(run_config, device, gpu_share(node.machine, count), node)
            for node, count in zip(self._nodes, actors, strict=True)
        ]
        local = LocalSite(actors[0], self._scratch, makers[0])
        others = [each for each in zip(self._nodes, actors, makers, strict=True) if each[1]]
        remote = cluster.remote_sites([each for each in others if not each[0].is_local])
        used = [node for node, _, _ in others]
        watch = Watch(self._address, used)
        self._fleet = Fleet([local, *remote], self.config.clients.count, watch)
        return self._fleet

    def _leave(self) -> None:
        if self._fleet is not None:
            self._fleet.close()
            self._fleet = None

    def num_nodes_left(self) -> int:
        """Look which nodes are alive, and return how many."""
        self._nodes = alive(self._nodes, self._address)
        return len(self._nodes)
