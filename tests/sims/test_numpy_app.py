"""Somebody else's app, in NumPy: a few changed lines, and its updates travel compressed."""

import importlib
import json
import re

import numpy as np
import pytest

from fedsbc.app_config import app_config
from fedsbc.experiment import upstream_compressor
from fedsbc.feedback import compress_with_feedback
from fedsbc.layout import Layout
from fedsbc.payload import encode
from fedsbc.seeds import Stream, generator
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
    assert outcome["accuracy"] == pytest.approx(0.84, abs=0.02)


TABLE = r"^\| (.*) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$"


def test_the_documentation_says_what_compression_costs_the_app(monkeypatch):
    """The app's own model and samples, its rounds played here."""
    monkeypatch.syspath_prepend(APP)
    model = importlib.import_module("digits.model")
    rows = re.findall(TABLE, (ROOT / "docs" / "own-apps.md").read_text(), re.MULTILINE)
    assert len(rows) == 4
    for upstream, rounds, accuracy, ratio in rows:
        name, _, density = upstream.partition(", density ")
        options = {"density": float(density)} if density else {}
        scheme = {"name": {"FedAvg": "none", "SBC": "sbc"}[name], **options}
        found = played(model, scheme, int(rounds))
        assert found[0] == pytest.approx(float(accuracy), abs=0.02), upstream
        assert 4 * 3 * 32 * NUM_PARAMS / found[1] == pytest.approx(float(ratio), rel=0.02), upstream


def played(model, scheme, rounds):
    """Return accuracy and upstream bits after some rounds of the four clients."""
    first = model.initial_parameters()
    layout = Layout.of((name, value.shape) for name, value in first.items())
    compressor = upstream_compressor(app_config(clients=4, rounds=rounds, upstream=scheme))
    residuals, num_bits = [None] * 4, 0
    weights = flat(layout, first)
    for round in range(1, rounds + 1):
        base = shaped(layout, weights)
        for client in range(4):
            trained, _ = model.train(base, *model.samples(seed=client))
            compressed = compress_with_feedback(
                compressor, flat(layout, trained) - flat(layout, base), residuals[client], layout,
                compressor.init_state(layout), generator(0, Stream.COMPRESS_UP, client, round),
            )  # fmt: skip
            residuals[client] = compressed.residual
            num_bits += 8 * len(encode(compressed.update))
            weights = weights + compressed.update.to_dense() / np.float32(4)
    return model.accuracy(shaped(layout, weights), *model.samples(seed=12345)), num_bits


def flat(layout, parameters):
    return np.concatenate([parameters[t.name].reshape(-1) for t in layout.tensors])


def shaped(layout, vector):
    views = zip(layout.tensors, layout.split(vector), strict=True)
    return {t.name: view.reshape(t.shape) for t, view in views}


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
