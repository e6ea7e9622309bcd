"""The app under `flwr run`, Flower's own simulation runtime, against `fedsbc run`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedsbc.run_folder import RunFolder

# Flower's own runtime: minutes on a busy machine
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "tests" / "small.yaml"


def fedsbc_run(out: Path, *overrides: str, config: Path = SMALL) -> None:
    settings = [word for override in overrides for word in ("--set", override)]
    command = [sys.executable, "-m", "sims.cli", "run", str(config), *settings, "--out", str(out)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What a clone would have, as it is in the working tree."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    folder = tmp_path_factory.mktemp("checkout") / "clone"  # no underscore: `flwr build`
    for name in listed.stdout.splitlines():
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def test_flwr_run_gives_the_weights_and_the_ledger_of_fedsbc_run(runtime, clone, tmp_path):
    overrides = ["clients.count=10", "rounds=3"]
    overrides += ["evaluate.every=2", "evaluate.clients=true", "final_sync=true"]
    ended, run = runtime.flwr_run(
        clone, 10, config=str(SMALL), set=" ".join(overrides), out=str(tmp_path / "flower")
    )
    assert ended.returncode == 0, ended.stderr
    assert run["status"] == "finished:completed", run["status-details"]
    assert f"run folder: {tmp_path / 'flower'}" in ended.stdout
    fedsbc_run(tmp_path / "ray", *overrides)
    flower, ray = RunFolder.open(tmp_path / "flower"), RunFolder.open(tmp_path / "ray")
    assert flower.summary().model_sha256 == ray.summary().model_sha256
    assert sorted(flower.ledger().rows, key=repr) == sorted(ray.ledger().rows, key=repr)
    assert flower.summary().completed
    files = {path.name for path in flower.path.iterdir()}
    assert files == {path.name for path in ray.path.iterdir()}
    assert "report.html" in files
    assert {row.kind for row in flower.ledger().rows} == {"hello", "train", "evaluate", "sync"}


def test_the_built_bundle_gives_the_same(runtime, clone, tmp_path):
    built = runtime.processes.run(["flwr", "build", "--app", str(clone)], 60)
    assert built.returncode == 0, built.stderr
    (bundle,) = runtime.processes.folder.glob("*.fab")
    # A home of its own: in the SuperLink's there may be an app of this version, and `flwr install`
    # asks before it replaces one.
    install = ["env", f"FLWR_HOME={tmp_path / 'home'}", "flwr", "install", str(bundle)]
    installed = runtime.processes.run(install, 60)
    assert installed.returncode == 0, installed.stderr
    (app,) = (tmp_path / "home" / "apps").iterdir()
    smaller = "model.name=mlp model.hidden=16 clients.count=3 clients.local_steps=2 rounds=1"
    config = "configs/demo/sbc.yaml"  # the bundle's own
    ended, run = runtime.flwr_run(app, 3, config=config, set=smaller, out=str(tmp_path / "flower"))
    assert run["status"] == "finished:completed", run["status-details"]
    assert "Starting Flower Simulation" in ended.stdout
    fedsbc_run(tmp_path / "ray", *smaller.split(), config=ROOT / config)
    flower, ray = RunFolder.open(tmp_path / "flower"), RunFolder.open(tmp_path / "ray")
    assert flower.summary().model_sha256 == ray.summary().model_sha256


def test_a_failed_server_app_is_a_failed_run(runtime, tmp_path):
    _, run = runtime.flwr_run(
        ROOT, 2, config=str(SMALL), set="clients.cuont=2", out=str(tmp_path / "failed")
    )
    assert run["status"] == "finished:failed"
    assert "did you mean `count`?" in run["status-details"]
    assert not (tmp_path / "failed").exists()
