"""Residuals of clients that are away, on real actors: the same bytes, whoever plays the client."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.experiments import play, small
from tests.local_grid import LocalGrid
from tests.strategies.test_absence import SEEN, residuals

SMALL = Path(__file__).parent.parent / "small.yaml"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    lines = [f"0,{round},{round}" for round in SEEN] + [f"{i},{i},{9 + i}" for i in range(1, 8)]
    path = tmp_path_factory.mktemp("trace") / "trace.csv"
    path.write_text("client_id,first_round,last_round\n" + "\n".join(lines) + "\n")
    return ["rounds=17", "participants=4", f"availability={{kind: trace, trace: {path}}}"]


@pytest.fixture(scope="module")
def reference(settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    config = small(*settings)
    play(config, LocalGrid(config, folder))
    return residuals(folder)


@pytest.mark.parametrize("actors", [1, 2, 4])
def test_pitfall_12_residuals_are_the_same_on_any_number_of_actors(
    tmp_path, settings, reference, actors
):
    more = [f"engine.actors={actors}", "engine.cpus_per_actor=0.25", "checkpoint.every=17"]
    command = [sys.executable, "-m", "sims.cli", "run", str(SMALL), "--out", str(tmp_path / "run")]
    for setting in [*settings, *more]:
        command += ["--set", setting]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert ended.returncode == 0, ended.stderr
    (states,) = {path.parent for path in (tmp_path / "run/checkpoint").rglob("client-00000.*")}
    assert residuals(states) == reference
