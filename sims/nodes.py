"""The nodes of a Ray cluster: what is free on them, and whether they are alive."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fedsbc.errors import ConfigError, RunError, StatesLost

from . import ray_private
from .resources import Machine

LOOK_EVERY_S = 1.0
"""Between two looks at the nodes of a run."""


@dataclass(frozen=True)
class Node:
    """A node of the cluster.

    Attributes:
        id: Ray's.
        is_local: whether the driver is on it.
        machine: what is free there.
    """

    id: str
    is_local: bool
    machine: Machine

    @property
    def name(self) -> str:
        """Its address."""
        return self.machine.name.removeprefix("on ")

    def strategy(self) -> NodeAffinitySchedulingStrategy:
        """Return what keeps an actor on this node."""
        return NodeAffinitySchedulingStrategy(self.id, soft=False)


def nodes_of_cluster() -> list[Node]:
    """Return the nodes that are alive with what is free on them, the driver's first.

    A GPU's memory is not known to Ray: see `measured`.
    """
    here = ray.get_runtime_context().get_node_id()
    free, living = ray_private.free_resources(), _living()
    found = []
    addresses = [address for address, _ in living.values()]
    for node_id, (address, _) in living.items():
        if addresses.count(address) > 1:  # several nodes on one machine
            address = f"{address}/{node_id[:6]}"
        have = free.get(node_id, {})
        memory, gpus = int(have.get("memory", 0)), have.get("GPU", 0.0)
        machine = Machine(have.get("CPU", 0.0), memory, gpus, name=f"on {address}")
        found.append(Node(node_id, node_id == here, machine))
    found.sort(key=lambda node: (not node.is_local, node.machine.name, node.id))
    if not found or not found[0].is_local:
        raise ConfigError("engine.address: this machine is not a node of that cluster")
    return found


def _living() -> dict[str, tuple[str, int]]:
    """Return address and port of the nodes that Ray takes for alive, by its id of the node."""
    nodes: Any = ray.nodes  # it has no types
    return {
        each["NodeID"]: (each["NodeManagerAddress"], each["NodeManagerPort"])
        for each in nodes()
        if each["Alive"]
    }


def alive(nodes: Sequence[Node], address: str, *, doubtful: bool = True) -> list[Node]:
    """Return those of some nodes that are alive.

    Args:
        nodes: of the cluster.
        address: of the cluster.
        doubtful: there is a reason to ask the nodes themselves: Ray finds out many seconds later.

    Raises:
        RunError: the cluster is gone.
    """
    try:
        living = _living()
    # Nothing is hidden: when the head is gone Ray raises one of many kinds (its own, gRPC's, plain
    # RuntimeError), all of which mean the same here, and the message carries the one that came.
    except Exception as error:
        raise RunError(
            f"the Ray cluster at {address} does not answer any more ({error}); "
            "`fedsbc resume` goes on from the last checkpoint"
        ) from error
    left = [node for node in nodes if node.id in living]
    if doubtful:
        left = [n for n in left if n.is_local or ray_private.answers(*living[n.id])]
    return left


class Watch:
    """Looks whether the nodes of a run are alive.

    Args:
        address: of the cluster.
        nodes: those of the run.
    """

    def __init__(self, address: str, nodes: Sequence[Node]) -> None:
        self._address = address
        self._nodes = list(nodes)
        self._looked = 0.0

    def __call__(self, has_died: bool) -> None:
        """Look now and then, and where an actor has just died.

        Raises:
            StatesLost: a node is gone.
            RunError: the cluster is.
        """
        now = time.monotonic()
        if not has_died and now - self._looked < LOOK_EVERY_S:
            return
        self._looked = now
        left = alive(self._nodes, self._address, doubtful=has_died)
        if len(left) < len(self._nodes):
            names = ", ".join(node.name for node in self._nodes if node not in left)
            raise StatesLost(f"node {names} was lost, and the states of its clients with it")
