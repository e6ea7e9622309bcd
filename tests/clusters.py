"""A Ray cluster of two nodes on this machine, for tests: its own folder, stopped by its pids.

    python -m tests.clusters FOLDER

is the process that has it, until its standard input ends.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.processes import ROOT, Command, pids_of, wait_until

SMALL = Path(__file__).parent / "small.yaml"
STORE_BYTES = 100 * 2**20
MARK = "FEDSBC_TEST_CLUSTER"


class TwoNodes:
    """A head, on which drivers are, and one more node; one CPU each.

    Args:
        folder: for Ray's files, and those that runs keep on the nodes; a short path.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.was_killed = False
        (folder / "ray").mkdir()  # Ray notes the address there
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.clusters", str(folder)],
            cwd=ROOT,
            env={
                **os.environ,
                "RAY_USAGE_STATS_ENABLED": "0",
                "TMPDIR": str(folder),
                MARK: str(folder),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        line = self._process.stdout.readline()
        if not line:
            self.stop()
        told = json.loads(line)
        self.address, self.other_pid = told["address"], told["other_pid"]

    def kill_other(self) -> None:
        """Kill -9 the other node's raylet: Ray ends what was started there."""
        os.kill(self.other_pid, signal.SIGKILL)
        self.was_killed = True

    def run(self, out: Path, *overrides: str) -> Command:
        """Start `fedsbc run` of the small experiment on the cluster."""
        settings = [f"engine.address={self.address}", *overrides]
        options = [word for setting in settings for word in ("--set", setting)]
        return Command("run", SMALL, "--out", out, *options)

    def stop(self) -> None:
        """End both nodes, and whatever they left behind."""
        self._process.communicate(timeout=60)
        for pid in pids_of(MARK, str(self.folder)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not pids_of(MARK, str(self.folder)))


@contextlib.contextmanager
def two_nodes() -> Iterator[TwoNodes]:
    """Have a cluster for a while."""
    folder = Path(tempfile.mkdtemp(prefix="f"))
    try:
        cluster = TwoNodes(folder)
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_for_round(command: Command, out: Path, round: int) -> None:
    """Wait until a run has closed a round."""
    rounds = out / "rounds.jsonl"

    def is_there() -> bool:
        assert command.process.poll() is None, command.end()
        return rounds.exists() and rounds.read_bytes().count(b"\n") >= round

    wait_until(is_there)


def main(folder: str) -> None:
    """Start both nodes, say where they are, and end them when nobody listens any more."""
    from ray.cluster_utils import Cluster

    own = {"include_dashboard": False, "temp_dir": folder}
    each = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, shutdown_at_exit=False, head_node_args={**each, **own})
    other = cluster.add_node(**each)
    (raylet,) = other.all_processes["raylet"]
    print(json.dumps({"address": cluster.address, "other_pid": raylet.process.pid}), flush=True)
    sys.stdin.read()
    for node in (other, cluster.head_node):
        node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)


if __name__ == "__main__":
    main(sys.argv[1])
