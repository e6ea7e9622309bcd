"""The one file that touches Ray's private parts; tested with Ray 2.55.

A driver whose head process dies is ended by Ray itself after a minute, with a line about RPCs and
with its files left behind. We look after the head, and end the run in order.
"""

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

from fedsbc.errors import RunError
from sims.errors import skip_exit_hooks

ANSWER_S = 5.0
"""How long a cluster may take to answer at all."""

HEAD = ("gcs_server", "raylet")
"""Processes that Ray cannot do without; its dashboard and monitors may die."""

UNUSED = ("start_api_server", "start_monitor", "start_log_monitor")
"""What starts Ray's dashboard (in part even without `include_dashboard`), its autoscaler and the
process that sends logs to the driver. A run of its own on one machine wants none of them; they
cost 4 s of each run and 200 MB."""


@contextlib.contextmanager
def only_what_a_run_needs() -> Iterator[None]:
    """Let `ray.init` start Ray without the processes that nobody here asks anything of."""
    node: Any = ray._private.node.Node
    kept = {name: getattr(node, name) for name in UNUSED if hasattr(node, name)}
    for name in kept:
        setattr(node, name, lambda self, **options: None)
    try:
        yield
    finally:
        for name, method in kept.items():
            setattr(node, name, method)


def check_head() -> None:
    """Look whether Ray's own processes are alive.

    Raises:
        RunError: one has died; nothing may be asked of Ray any more.
    """
    node: Any = ray._private.worker._global_node
    dead: list[str] = [kind for kind, _ in node.dead_processes() if kind in HEAD] if node else []
    if dead:
        raise RunError(
            f"Ray's process {dead[0]} has died, and the actors with it; "
            "`fedsbc resume` goes on from the last checkpoint"
        )


def stop(mark: str) -> None:
    """Stop Ray: in order, or where its head has died by killing what is left of it.

    Args:
        mark: `NAME=value` in the environment of all of Ray's processes, and of nobody else's.
    """
    try:
        check_head()
    except RunError:
        skip_exit_hooks()  # Ray's would wait for the head, and crash
        for pid in _marked(mark.encode()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    else:
        ray.shutdown()


def _marked(mark: bytes) -> set[int]:
    """Return the processes that were started with a variable in their environment, and all below.

    A process that gives itself a title overwrites its environment: Ray's agents are found as
    children of the raylet.
    """
    parents, found = {}, set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(entry.name)] = _parent(entry)
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.add(int(entry.name))
    return {pid for pid in parents if found.intersection(_ancestry(pid, parents))}


def _parent(entry: Path) -> int:
    """Return the parent of a process; its name, in parentheses, may hold anything."""
    return int((entry / "stat").read_text().rpartition(")")[2].split()[1])


def _ancestry(pid: int, parents: dict[int, int]) -> Iterator[int]:
    """Yield a process, its parent, and so on."""
    while pid in parents:
        yield pid
        pid = parents[pid]


def answering_address(address: str) -> str:
    """Return `host:port` of a cluster, once something answers there; Ray would try for minutes.

    Args:
        address: `host:port`, or `auto` for what `ray start` has left on this machine.

    Raises:
        OSError: nothing answers, or nothing is known.
        ValueError: it is not an address.
    """
    services: Any = ray._private.services
    known: str = services.canonicalize_bootstrap_address_or_die(address)
    host, _, port = known.rpartition(":")
    _connect(host.strip("[]"), int(port))
    return known


def _connect(host: str, port: int) -> None:
    socket.create_connection((host, port), timeout=ANSWER_S).close()


def answers(host: str, port: int) -> bool:
    """Return whether anything answers there."""
    try:
        _connect(host, port)
    except OSError:
        return False
    return True


def free_resources() -> dict[str, dict[str, float]]:
    """Return what nobody holds on each node of the cluster, by Ray's id of the node."""
    state: Any = ray._private.state
    free: dict[str, dict[str, float]] = state.available_resources_per_node()
    return free
