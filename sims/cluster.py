"""A Ray cluster that runs already: joined for one run, left as it was found."""

import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from fedsbc import environment
from fedsbc.checkpoint.resuming import BYTES_DEPEND_ON
from fedsbc.errors import ConfigError, RunError, StatesLost

from . import ray_private, signals
from .keeper import Keeper
from .nodes import Node, alive
from .probe import probe_node
from .sites import MakeActor, RemoteSite

START_S = 120.0
"""How long a keeper may take to start: the first process of a node imports everything."""


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
