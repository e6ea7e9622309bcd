"""The one file that touches Ray's private parts; tested with Ray 2.55.

A driver whose head process dies is ended by Ray after a minute, with a line about RPCs and its
files left behind. We look after the head ourselves, and end the run in order.
"""

import atexit

import ray

from fedsbc.errors import RunError

HEAD = ("gcs_server", "raylet")
"""Processes that Ray cannot do without; its dashboard and monitors may die."""


def check_head() -> None:
    """Look whether Ray's own processes are alive.

    Raises:
        RunError: one has died; nothing more can be asked of Ray.
    """
    node = ray._private.worker._global_node
    dead = [kind for kind, _ in node.dead_processes() if kind in HEAD] if node else []
    if dead:
        raise HeadLostError(f"Ray's {dead[0]} process has died: the engine is gone")


class HeadLostError(RunError):
    """Ray's head has died; whoever cleans up must not call Ray any more."""


def abandon() -> None:
    """Kill what is left of Ray without asking it, and keep it from being asked at exit."""
    node = ray._private.worker._global_node
    atexit.unregister(ray.shutdown)
    atexit.unregister(ray._private.worker.shutdown)
    if node is not None:
        node.kill_all_processes(check_alive=False, allow_graceful=False)
