"""The one file that touches Ray's private parts; tested with Ray 2.55.

A driver whose head process dies is ended by Ray itself after a minute, with a line about RPCs and
with its files left behind. We look after the head, and end the run in order.
"""

import atexit

import ray

from fedsbc.errors import RunError

HEAD = ("gcs_server", "raylet")
"""Processes that Ray cannot do without; its dashboard and monitors may die."""


def check_head() -> None:
    """Look whether Ray's own processes are alive.

    Raises:
        RunError: one has died; nothing may be asked of Ray any more.
    """
    node = ray._private.worker._global_node
    dead = [kind for kind, _ in node.dead_processes() if kind in HEAD] if node else []
    if dead:
        raise RunError(
            f"Ray's process {dead[0]} has died, and the actors with it; "
            "`fedsbc resume` goes on from the last checkpoint"
        )


def stop() -> None:
    """Stop Ray: in order, or where its head has died by killing what is left of it."""
    try:
        check_head()
    except RunError:
        atexit.unregister(ray.shutdown)  # it would wait for the head
        ray._private.worker._global_node.kill_all_processes(check_alive=False, allow_graceful=False)
    else:
        ray.shutdown()
