"""A model with BatchNorm under both policies: what travels, what stays, what it costs."""

import numpy as np
import pytest

from fedsbc.data import load, partition
from fedsbc.evaluation import evaluate
from fedsbc.flat_model import model_sha256
from fedsbc.message import ARRAYS, FIELDS
from fedsbc.payload import decode
from fedsbc.state_files import FileHome
from fedsbc.state_slot import Slot
from strategies.members import draw_cohort
from tests.experiments import initial, play, small
from tests.local_grid import LocalGrid, SharingGrid

ROUNDS = 10


def with_norm(buffers, *overrides):
    return small(
        f"model={{name: cnn-bn, buffers: {buffers}}}",
        "clients.count=4",
        "clients.local_steps=2",
        f"rounds={ROUNDS}",
        "participation=0.5",
        *overrides,
    )


def states(folder, count=4):
    (run_id,) = {Slot(path).header()["run_id"] for path in folder.glob("client-*")}
    homes = [FileHome(folder, run_id, client) for client in range(count)]
    return {client: state for client, home in enumerate(homes) if (state := home.load(10**6))}


def rounds_of(strategy):
    """Return how many rounds each client trained in."""
    rows = [r for r in strategy.outcome.ledger.rows if (r.kind, r.direction) == ("train", "up")]
    return {client: sum(row.client_id == client for row in rows) for client in range(4)}


@pytest.mark.parametrize("buffers", ["average", "local"])
def test_pitfall_24_buffers_follow_the_policy_and_integers_stay_integers(tmp_path, buffers):
    config = with_norm(buffers)
    wire = play(config, LocalGrid(config, tmp_path / "wire"))
    shared = play(config, SharingGrid(config, tmp_path / "shared", order=1))
    assert wire.outcome.server.model_hash() == shared.outcome.server.model_hash()
    assert wire.outcome.ledger.rows == shared.outcome.ledger.rows

    model, _ = initial(config)
    names = {t.name for t in model.buffer_layout.tensors}
    assert names
    assert all(name.endswith(("running_mean", "running_var")) for name in names)
    moved = not np.array_equal(wire.outcome.server.buffers, model.buffers)
    assert moved == (buffers == "average")
    for folder in ("wire", "shared"):
        found = states(tmp_path / folder)
        assert {"buffers" in state.arrays for state in found.values()} == {buffers == "local"}
        for client, state in found.items():
            counters = {n: a for n, a in state.arrays.items() if "num_batches_tracked" in n}
            assert len(counters) == len(model.integer_buffers) > 0
            for counter in counters.values():
                assert counter.dtype == np.int64
                assert counter == 2 * rounds_of(wire)[client], "local steps of this client"


def test_averaged_buffers_are_counted_both_ways_and_local_ones_only_once(tmp_path):
    sizes = {}
    for buffers in ("average", "local"):
        config = with_norm(buffers)
        grid = LocalGrid(config)
        strategy = play(config, grid)
        for direction, contents in (("down", grid.sent_content), ("up", grid.received_content)):
            found = [c for c in contents if c[FIELDS]["kind"].startswith("train")]
            sizes[buffers, direction] = [
                "buffers" in c[ARRAYS] if ARRAYS in c else False for c in found
            ]
            travelled = sum(
                len(array.data) for c in found if ARRAYS in c for array in c[ARRAYS].values()
            )
            assert strategy.outcome.ledger.totals(direction).payload_bits == 8 * travelled
    assert all(sizes["average", "down"])
    assert all(sizes["average", "up"])
    assert not any(sizes["local", "up"])
    fulls = sum(sizes["local", "down"])
    assert 0 < fulls < len(sizes["local", "down"]), "only with the full model, to start from"


def test_the_servers_buffers_are_the_mean_of_the_clients(tmp_path):
    config = with_norm("average", "rounds=1", "participation=1.0")
    grid = LocalGrid(config)
    strategy = play(config, grid)
    server = strategy.outcome.server
    sent = [
        decode(c[ARRAYS]["buffers"].data, server.buffer_layout).to_dense()
        for c in grid.received_content
        if c[FIELDS]["kind"] == "train-reply"
    ]
    assert len(sent) == 4
    np.testing.assert_allclose(server.buffers, np.mean(sent, axis=0), rtol=1e-6)


def test_local_buffers_are_those_a_client_evaluates_with(tmp_path):
    config = with_norm("local", "evaluate={every: 1, clients: true}", "rounds=3")
    strategy = play(config, LocalGrid(config, tmp_path))
    last = strategy.outcome.records[-1]
    server = strategy.outcome.server
    model, _ = initial(config)
    data = load(config.data)
    parts = partition.split(config.data.partition, data.y_train, 4, config.seed)
    right = total = 0
    for client, state in states(tmp_path).items():
        if state.round == 3:
            model.load(server.weights, state.arrays["buffers"])
            x, y = data.train_images[parts[client]], data.y_train[parts[client]]
            right, total = right + evaluate(model, x, y).accuracy * len(y), total + len(y)
    assert total
    assert last.client_accuracy == pytest.approx(right / total, abs=1e-12)


def test_a_hash_says_nothing_of_local_buffers(tmp_path):
    config = with_norm("local", "rounds=1")
    server = play(config, LocalGrid(config, tmp_path)).outcome.server
    assert server.sent_hash() == model_sha256(server.weights, server.buffers[:0])[:16]
    assert server.model_hash() == model_sha256(server.weights, server.buffers)


def test_pitfall_23_a_last_batch_of_one_with_batchnorm():
    # 4000 samples over 48 clients: 83 or 84 each. 83 are batches of 41 and 42, 84 leave two.
    config = with_norm(
        "average", "clients.count=48", "clients.batch_size=41", "clients.local_steps=null",
        "clients.local_epochs=1", "participation=0.125", "rounds=2",
    )  # fmt: skip
    strategy = play(config, LocalGrid(config))
    assert [r.participants for r in strategy.outcome.records] == [6, 6]
    assert np.isfinite(strategy.outcome.server.buffers).all()
    parts = partition.split(config.data.partition, load(config.data).y_train, 48, config.seed)
    assert {len(part) for part in parts} == {83, 84}
    for record in strategy.outcome.records:
        cohort = draw_cohort(range(48), 6, config.seed, record.round)
        assert record.num_steps == sum(len(parts[client]) - 81 for client in cohort)
