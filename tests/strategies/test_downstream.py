"""Downstream: any scheme, with the server's own residual; without one, the shortest form."""

import numpy as np
import pytest

from fedsbc.compressors import TABLE
from fedsbc.layout import Layout
from fedsbc.lossless import lossless_update
from fedsbc.payload import decode, encode
from fedsbc.updates import DenseBlock, SparseFloatBlock, Update
from strategies.aggregate import BlockSum
from tests.experiments import Notes, play, small
from tests.local_grid import LocalGrid
from tests.strategies.test_conservation import options, with_feedback


def run(name):
    pairs = ", ".join(f"{key}: {value}" for key, value in options(name).items())
    config = small(f"downstream={{{pairs}}}", "rounds=4", "participation=0.5")
    notes = Notes()
    return play(config, LocalGrid(config), notes), notes


def up(notes, round):
    return {
        int(name.rsplit("-", 1)[1]): payload
        for name, payload in notes.payloads.items()
        if name.startswith(f"{round}-up-")
    }


@pytest.mark.parametrize("name", TABLE)
def test_any_scheme_and_clients_hold_the_servers_weights(name):
    """Each client checks the hash of what it decoded; one that differs is a failure."""
    strategy, notes = run(name)
    assert notes.failures == []
    assert [r.participants for r in strategy.outcome.records] == [4] * 4
    rows = [r for r in strategy.outcome.ledger.rows if (r.round, r.direction) == (4, "down")]
    assert len({row.payload_bits for row in rows}) > 1, "some caught up, some started"


@pytest.mark.parametrize("name", with_feedback())
def test_pitfall_14_what_went_down_plus_the_servers_residual_is_the_sum_of_means(name):
    strategy, notes = run(name)
    server = strategy.outcome.server
    means = np.zeros(server.layout.size)
    sent = np.zeros(server.layout.size)
    for round in range(1, 5):
        total = BlockSum(list(up(notes, round)), server.layout, "mean")
        for client, payload in up(notes, round).items():
            total.settle(client, decode(payload, server.layout))
        means += total.result()
        sent += decode(notes.payloads[f"{round}-down"], server.layout).to_dense()
    assert server.residual is not None
    np.testing.assert_allclose(sent + server.residual, means, atol=1e-5 * abs(means).max())


def test_without_a_scheme_the_weights_are_the_sum_of_means():
    strategy, notes = run("none")
    assert strategy.outcome.server.residual is None
    for round in range(1, 5):
        total = BlockSum(list(up(notes, round)), strategy.outcome.server.layout, "mean")
        for client, payload in up(notes, round).items():
            total.settle(client, decode(payload, strategy.outcome.server.layout))
        sent = decode(notes.payloads[f"{round}-down"], strategy.outcome.server.layout)
        assert sent.to_dense().tobytes() == (total.result() + 0).tobytes()


@pytest.mark.parametrize("density", [0.0, 0.001, 0.01, 0.1, 0.3, 0.6, 0.9, 0.95, 0.99, 1.0])
def test_the_lossless_form_is_the_shorter_one(density):
    layout = Layout.of([("a", (20_000,))])
    draws = np.random.default_rng(0)
    vector = draws.standard_normal(20_000).astype(np.float32)
    vector[draws.random(20_000) >= density] = 0
    found = encode(lossless_update(vector, layout))
    assert decode(found, layout).to_dense().tobytes() == (vector + 0).tobytes()
    positions = np.flatnonzero(vector)
    sparse = SparseFloatBlock(len(vector), positions, vector[positions])
    forms = [encode(Update(layout, [block])) for block in (sparse, DenseBlock(vector))]
    assert len(found) <= 1.001 * min(map(len, forms))
