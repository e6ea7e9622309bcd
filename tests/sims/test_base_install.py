"""A device: a fresh environment with the base install takes part, with the simulation's bytes."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.benchmarks.device import NOT_NEEDED, config_of, deploy, installed
from tests.experiments import play
from tests.local_grid import LocalGrid
from tests.sims.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # installs torch, then a deployment


@pytest.fixture(scope="module")
def venv():
    with tempfile.TemporaryDirectory(prefix="fedsbc-device-") as scratch:  # over a GB: not kept
        yield _installed(Path(scratch) / "venv")


def _installed(folder):
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    ended = subprocess.run(
        [folder / "bin" / "pip", "install", "-q", "-c", "constraints.txt", "."],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if ended.returncode:
        pytest.skip(f"no packages to be had: {ended.stderr.strip().splitlines()[-1]}")
    return folder


def test_the_base_install_has_nothing_that_a_device_does_not_need(venv):
    assert installed(venv)["not_needed"] == []
    imports = "import sys, clients.app; print(*sys.modules)"
    loaded = subprocess.run(
        [venv / "bin" / "python", "-c", imports], cwd=venv, capture_output=True, text=True
    )
    assert loaded.returncode == 0, loaded.stderr
    assert set(loaded.stdout.split()).isdisjoint(NOT_NEEDED)


def test_a_device_with_the_base_install_takes_part(venv, tmp_path):
    config = config_of("clients.local_steps=2")
    run, peaks, _ = deploy(venv, config, tmp_path)
    assert "flwr-clientapp" in peaks, "it was of that environment"
    assert [record.participants for record in run.rounds()] == [2, 2]
    simulated = play(config, LocalGrid(config, tmp_path / "simulated"))
    assert run.summary().model_sha256 == simulated.outcome.server.model_hash()
