"""A Ray cluster that runs already: joined for one run, left as it was found."""

import contextlib
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fedsbc import environment
from fedsbc.checkpoint.resuming import BYTES_DEPEND_ON
from fedsbc.errors import ConfigError, RunError, StatesLost

from . import ray_private, signals
from .keeper import Keeper
from .probe import probe_node
from .resources import Machine
from .sites import MakeActor, RemoteSite

START_S = 120.0
"""How long a keeper may take to start: the first process of a node imports everything."""

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


@contextlib.contextmanager
def joined(address: str, variables: Mapping[str, str]) -> Iterator[None]:
    """Join the cluster at an address, and leave it; it is never stopped.

    Args:
        address: `host:port`, or `auto` for the cluster that this machine is part of.
        variables: environment of the actors.

    Raises:
        ConfigError: no cluster can be joined there.
    """
    if "://" in address:
        raise ConfigError(
            f"engine.address: {address}: a driver outside the cluster cannot map its files; start "
            "the run on a node of the cluster, with engine.address: auto"
        )
    with signals.kept():
        try:
            ray.init(
                address=ray_private.answering_address(address),
                namespace=f"fedsbc-{secrets.token_hex(4)}",
                runtime_env={"env_vars": dict(variables)},
                configure_logging=False,
                log_to_driver=False,
            )
        except (OSError, RuntimeError, ValueError, AssertionError) as error:
            reason = " ".join(str(error).split())
            raise ConfigError(
                f"engine.address: {address}: no Ray cluster can be joined from this machine "
                f"({reason[:300]}); start one here: ray start --head, or: ray start --address=..."
            ) from error
    try:
        signals.check()
        yield
    finally:
        ray.shutdown()  # what was joined stays: this ends our connection and our actors


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
    except Exception as error:  # whatever Ray makes of a head that is gone
        raise RunError(
            f"the Ray cluster at {address} does not answer any more ({error}); "
            "`fedsbc resume` goes on from the last checkpoint"
        ) from error
    left = [node for node in nodes if node.id in living]
    if doubtful:
        left = [n for n in left if n.is_local or ray_private.answers(*living[n.id])]
    return left


def measured(
    nodes: Sequence[Node], experiment: str, sample_shape: Sequence[int], share: float
) -> list[Node]:
    """Return the nodes with the memory that a client takes of their GPUs, measured on each.

    Args:
        nodes: of the cluster.
        experiment: the resolved config as JSON.
        sample_shape: (channels, height, width) of the data.
        share: of a GPU that an actor holds.
    """
    asked = {
        node.id: ray.remote(num_gpus=share, num_cpus=0, max_calls=1)(probe_node)
        .options(scheduling_strategy=node.strategy())
        .remote(experiment, tuple(sample_shape))
        for node in nodes
        if node.machine.gpus
    }
    found = []
    for node in nodes:
        if node.id in asked:
            probe = ray.get(asked[node.id])
            machine = replace(
                node.machine, gpu_bytes=probe.total_bytes, client_gpu_bytes=probe.client_bytes
            )
            found.append(replace(node, machine=machine))
        else:
            found.append(node)
    return found


def remote_sites(wanted: Sequence[tuple[Node, int, MakeActor]]) -> list[RemoteSite]:
    """Start the keepers of nodes and return their sites.

    Args:
        wanted: each node with the number of its actors, and what starts one.

    Raises:
        ConfigError: a node has other versions than this machine.
        StatesLost: a node is gone.
    """
    keepers: list[Any] = [
        ray.remote(num_cpus=0)(Keeper)
        .options(scheduling_strategy=node.strategy())
        .remote(token=secrets.token_hex(8))
        for node, _, _ in wanted
    ]
    asked = [keeper.describe.remote() for keeper in keepers]
    sites = []
    for (node, num_actors, make_actor), keeper, answer in zip(wanted, keepers, asked, strict=True):
        facts = _facts(node, answer)
        _check_versions(node.name, facts)
        root = Path(facts["root"])
        sites.append(RemoteSite(node.name, num_actors, root, make_actor, keeper))
    return sites


def _facts(node: Node, answer: Any) -> dict[str, Any]:
    """Return what a keeper says of its node once it has started."""
    try:
        facts: dict[str, Any] = ray.get(answer, timeout=START_S)
    except ray.exceptions.GetTimeoutError as error:
        raise RunError(
            f"node {node.name}: no process started there within {START_S:g} s"
        ) from error
    except ray.exceptions.RayError as error:
        if not alive([node], "auto"):
            raise StatesLost(f"node {node.name} was lost") from error
        reason = str(error).strip().splitlines()[-1]
        raise ConfigError(
            f"node {node.name}: fedsbc cannot be started there ({reason}); every node needs the "
            "Python environment of this machine"
        ) from error
    return facts


def _check_versions(name: str, facts: Mapping[str, Any]) -> None:
    """Refuse a node that would give other bytes; say where that cannot be ruled out."""
    here = environment.describe()
    for package in BYTES_DEPEND_ON:
        there, ours = facts["packages"].get(package), here["packages"].get(package)
        if there != ours:
            raise ConfigError(
                f"node {name}: {package} is {there}, but {ours} on this machine: the bytes would "
                "differ; install the same versions on all nodes"
            )
    if facts["cpu"] != here["cpu"]:
        print(
            f"node {name} has another processor ({facts['cpu']}) than this machine "
            f"({here['cpu']}): the same bytes are not promised"
        )


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
