"""The app under `flwr run`, Flower's own simulation runtime, against `fedsbc run`."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fedsbc.run_folder import RunFolder
from sims.deploy.processes import Processes, free_ports, wait_for_port

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "tests" / "small.yaml"
TIMEOUT_S = 200.0


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


@pytest.fixture(scope="module")
def runtime():
    scratch = Path(tempfile.mkdtemp(prefix="fsb-"))  # short: Ray's sockets lie below it
    (scratch / "work").mkdir()
    environment = {"FLWR_HOME": str(scratch / "home"), "RAY_TMPDIR": str(scratch)}
    processes = Processes(scratch / "work", environment)
    try:
        with processes:
            yield Runtime(processes, scratch / "home")
        assert processes.left_over() == []
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def fedsbc_run(out: Path, *overrides: str, config: Path = SMALL) -> None:
    settings = [word for override in overrides for word in ("--set", override)]
    command = [sys.executable, "-m", "sims.cli", "run", str(config), *settings, "--out", str(out)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_flwr_run_gives_the_weights_and_the_ledger_of_fedsbc_run(runtime, tmp_path):
    overrides = ["clients.count=10", "rounds=3"]
    ended, run = runtime.flwr_run(
        ROOT, 10, config=str(SMALL), set=" ".join(overrides), out=str(tmp_path / "flower")
    )
    assert ended.returncode == 0, ended.stderr
    assert run["status"] == "finished:completed", run["status-details"]
    assert f"run folder: {tmp_path / 'flower'}" in ended.stdout
    fedsbc_run(tmp_path / "ray", *overrides)
    flower, ray = RunFolder.open(tmp_path / "flower"), RunFolder.open(tmp_path / "ray")
    assert flower.summary().model_sha256 == ray.summary().model_sha256
    assert sorted(flower.ledger().rows, key=repr) == sorted(ray.ledger().rows, key=repr)
    assert flower.summary().completed


def test_the_built_bundle_gives_the_same(runtime, tmp_path):
    (clone := tmp_path / "clone").mkdir()
    _copy_tracked_files(clone)
    built = runtime.processes.run(["flwr", "build", "--app", str(clone)], 60)
    assert built.returncode == 0, built.stderr
    (bundle,) = runtime.processes.folder.glob("*.fab")
    installed = runtime.processes.run(["flwr", "install", str(bundle)], 60)
    assert installed.returncode == 0, installed.stderr
    (app,) = (runtime.home / "apps").glob("*" + bundle.name.split(".")[-2])
    smaller = "model.name=mlp model.hidden=16 clients.count=3 clients.local_steps=2 rounds=1"
    config = "configs/demo/sbc.yaml"  # the bundle's own
    ended, run = runtime.flwr_run(app, 3, config=config, set=smaller, out=str(tmp_path / "flower"))
    assert run["status"] == "finished:completed", run["status-details"]
    assert "Starting Flower Simulation" in ended.stdout
    fedsbc_run(tmp_path / "ray", *smaller.split(), config=ROOT / config)
    flower, ray = RunFolder.open(tmp_path / "flower"), RunFolder.open(tmp_path / "ray")
    assert flower.summary().model_sha256 == ray.summary().model_sha256


def _copy_tracked_files(folder: Path) -> None:
    """Copy what a clone would have, as it is in the working tree."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.splitlines():
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def test_a_failed_server_app_is_a_failed_run(runtime, tmp_path):
    _, run = runtime.flwr_run(
        ROOT, 2, config=str(SMALL), set="clients.cuont=2", out=str(tmp_path / "failed")
    )
    assert run["status"] == "finished:failed"
    assert "did you mean `count`?" in run["status-details"]
    assert not (tmp_path / "failed").exists()
