"""The one file that touches Ray's private parts; tested with Ray 2.55.

A driver whose head process dies is ended by Ray itself after a minute, with a line about RPCs and
with its files left behind. We look after the head, and end the run in order.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

from fedsbc.errors import RunError
from sims.errors import skip_exit_hooks

HEAD = ("gcs_server", "raylet")
"""Processes that Ray cannot do without; its dashboard and monitors may die."""


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


def _marked(mark: bytes) -> Iterator[int]:
    """Yield the ids of other processes that were started with a variable in their environment."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)
