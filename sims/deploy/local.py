"""Run one experiment on real SuperNodes of this machine, and leave nothing but the run folder."""

import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from fedsbc.config import Config
from fedsbc.errors import ConfigError, RunError
from fedsbc.records import Summary
from fedsbc.run_folder import RunFolder
from sims import signals

from .app_folder import write_app
from .data import write_device_files
from .deployment import Deployment

POLL_S = 0.5
FLOWER_LINE = ("INFO ", "WARNING ", "DEBUG ")


def run(config: Config, out: Path) -> Summary:
    """Deploy the clients of a config on this machine, run it and collect the run folder.

    Each client is a SuperNode with a key of its own; it holds its samples in a file and its state
    on disk. All processes are stopped at the end, also after Ctrl-C; keys and states are removed.

    Raises:
        ConfigError: the run folder exists; nothing was started.
        RunError: the deployment or the run failed.
    """
    if out.exists():
        raise ConfigError(f"{out}: exists already; name another folder with --out, or remove it")
    folder = TemporaryDirectory(prefix="fedsbc-deploy-", ignore_cleanup_errors=True)
    with signals.raising(), folder as name, Deployment(Path(name)) as deployment:
        scratch = Path(name)
        write_app(scratch / "app", config, out)
        files = write_device_files(config, scratch / "data")
        deployment.start_superlink()
        for client_id, file in enumerate(files):
            node = deployment.add_node(f"node-{client_id:05d}", node_config(client_id, file))
            deployment.start_node(node.name)
        signals.check()
        run_id = deployment.submit(scratch / "app")
        _follow(deployment, run_id)
        status, details = deployment.wait(run_id, timeout_s=60)
    if status != "finished:completed":
        raise RunError(f"the run is {status}: {details}")
    return RunFolder.open(out).summary()


def node_config(client_id: int, data_file: Path) -> dict[str, str | int | bool]:
    """Return what a SuperNode is started with; its state lies in a folder beside its data."""
    return {
        "partition-id": client_id,
        "data": str(data_file),
        "state-dir": str(data_file.with_suffix("")),
        "state-durable": True,
    }


def _follow(deployment: Deployment, run_id: str) -> None:
    """Show what the ServerApp prints until the run ends; say which SuperNodes end before it."""
    processes = deployment.processes
    processes.start("log", ["flwr", "log", run_id, "--stream"])
    shown, lost = 0, set[str]()
    is_running = True
    while is_running:
        time.sleep(POLL_S)
        signals.check()
        processes.check("superlink")
        is_running = processes.is_running("log")
        lines = processes.log("log").splitlines(keepends=True)
        while lines and is_running and not lines[-1].endswith("\n"):
            lines.pop()
        for line in lines[shown:]:
            if not any(word in line for word in FLOWER_LINE):
                sys.stdout.write(line)
        sys.stdout.flush()
        shown = len(lines)
        for name in deployment.nodes.keys() - lost:
            with suppress(KeyError):
                if not processes.is_running(name):
                    lost.add(name)
                    print(f"{name} has ended: {processes.last_line(name)}", file=sys.stderr)
    processes.stop("log")
