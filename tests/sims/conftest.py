"""A SuperLink in simulation mode, one for all tests that need one."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from sims.deploy.processes import Processes, free_ports, wait_for_port

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 600.0
"""Alone on two cores a run takes about a minute; beside other work several."""


class Runtime:
    """A SuperLink in simulation mode, started in a folder that has nothing to import."""

    def __init__(self, processes: Processes, home: Path) -> None:
        self.processes, self.home = processes, home
        (port,) = free_ports(1)
        home.mkdir()
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "test"\n'
            f'[superlink.test]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
        )
        processes.start(
            "superlink",
            ["flower-superlink", "--insecure", "--simulation", "--port", str(port)],
        )
        wait_for_port(processes, "superlink", port, timeout_s=60)

    def flwr_run(self, app: Path, num_nodes: int, **run_config: str):
        """Run an app, its log streamed; return the ended process and the run's entry."""
        config = " ".join(f"{key}='{value}'" for key, value in run_config.items())
        federation = f"num-supernodes={num_nodes} client-resources-num-cpus=1"
        options = ["--federation-config", federation, "--run-config", config, "--stream"]
        ended = self.processes.run(["flwr", "run", str(app), *options], TIMEOUT_S)
        listed = self.processes.run(["flwr", "list", "--format", "json"], 60)
        runs = json.loads(listed.stdout[listed.stdout.index("{") :])["runs"]
        return ended, max(runs, key=lambda run: run["pending-at"], default=None)


@pytest.fixture(scope="session")
def runtime():
    scratch = Path(tempfile.mkdtemp(prefix="fsb-"))  # short: Ray's sockets lie below it
    (scratch / "work").mkdir()
    environment = {"FLWR_HOME": str(scratch / "home"), "RAY_TMPDIR": str(scratch)}
    environment["PYTHONPATH"] = str(ROOT)  # behind the app's own bundle
    processes = Processes(scratch / "work", environment)
    try:
        with processes:
            yield Runtime(processes, scratch / "home")
        assert processes.left_over() == []
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
