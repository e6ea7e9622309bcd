"""Somebody else's app, in NumPy: a few changed lines, and its updates travel compressed."""

import json

import pytest

from tests.sims.conftest import ROOT

pytestmark = pytest.mark.slow  # real processes and Flower's polling: minutes

APP = ROOT / "examples" / "numpy-app"
NUM_PARAMS = 28 * 28 * 126 + 126 + 126 * 10 + 10
DENSE_BITS = 4 * 3 * 32 * NUM_PARAMS
"""Of four clients in three rounds without compression."""


def test_the_numpy_app_learns_and_sends_300_times_less(runtime, tmp_path):
    ended, run = runtime.flwr_run(APP, 4, out=str(tmp_path / "outcome.json"))
    assert run["status"] == "finished:completed", ended.stdout
    outcome = json.loads((tmp_path / "outcome.json").read_text())
    assert NUM_PARAMS >= 100_000
    assert DENSE_BITS / outcome["up-bits"] >= 300
    assert outcome["accuracy"] > 0.5


def test_the_documentation_shows_the_app_as_it_is():
    text = (ROOT / "docs" / "own-apps.md").read_text()
    added = {
        line[1:].strip()
        for block in text.split("```diff\n")[1:]
        for line in block.split("```")[0].splitlines()
        if line.startswith("+") and line[1:].strip()
    }
    assert len(added) > 8
    here = {
        line.strip()
        for path in (APP / "digits").glob("*.py")
        for line in path.read_text().splitlines()
    }
    assert added - here == set()
    assert "torch" not in "".join(path.read_text() for path in (APP / "digits").glob("*.py"))
