"""Clients that test the model, and the last synchronisation: counted, and without a trace."""

import numpy as np
import pytest

from fedsbc.config import Config
from fedsbc.data import load, partition
from fedsbc.evaluation import evaluate
from fedsbc.flat_model import model_sha256
from fedsbc.message import ARRAYS, FIELDS
from fedsbc.state_files import FileHome
from fedsbc.state_slot import Slot
from strategies.strategy import CompressedStrategy
from tests.experiments import Notes, initial, play, small
from tests.local_grid import FIRST_NODE, LocalGrid, SharingGrid

LAST = 10**6


def of_kind(strategy: CompressedStrategy, *kinds: str):
    return [row for row in strategy.outcome.ledger.rows if row.kind in kinds]


def grids(config: Config, folder):
    return [LocalGrid(config, folder / "wire"), SharingGrid(config, folder / "shared")]


def test_pitfall_18_evaluating_more_often_changes_nothing_in_training(tmp_path):
    base = ["rounds=12", "participation=0.5", "downstream={name: topk, density: 0.02}"]
    never = small(*base, "evaluate.every=100")
    always = small(*base, "evaluate.every=1", "evaluate.clients=true")
    plain = play(never, LocalGrid(never))
    for grid in grids(always, tmp_path):
        tested = play(always, grid)
        assert tested.outcome.server.model_hash() == plain.outcome.server.model_hash()
        assert of_kind(tested, "train", "hello") == of_kind(plain, "train", "hello")
        assert len(of_kind(tested, "evaluate")) == 2 * 4 * 12, "the cohort, down and up"


def found(strategy, folder):
    """Return the states of all clients."""
    run_ids = {Slot(path).header()["run_id"] for path in folder.glob("client-*")}
    return [
        state
        for run_id in run_ids
        for client in range(strategy.config.clients.count)
        if (state := FileHome(folder, run_id, client).load(LAST)) is not None
    ]


def test_client_evaluation_is_the_weighted_share_of_their_own_samples():
    config = small(
        "rounds=2",
        "evaluate={every: 2, clients: true}",
        "data.partition={kind: dirichlet, alpha: 0.3}",
    )
    strategy = play(config, LocalGrid(config))
    first, second = strategy.outcome.records
    assert (first.client_accuracy, first.client_loss) == (None, None)

    model, _ = initial(config)
    data, server = load(config.data), strategy.outcome.server
    parts = partition.split(config.data.partition, data.y_train, 8, config.seed)
    assert len({len(part) for part in parts}) > 1
    everything = np.concatenate(parts)
    model.load(server.weights, server.buffers)
    expected = evaluate(model, data.train_images[everything], data.y_train[everything])
    assert second.client_accuracy == pytest.approx(expected.accuracy, abs=1e-12)
    assert second.client_loss == pytest.approx(expected.loss, rel=1e-6)


def test_an_evaluation_is_charged_for_what_travels_and_no_base_moves():
    config = small("rounds=1", "evaluate={every: 1, clients: true}")
    notes, grid = Notes(), LocalGrid(config)
    strategy = play(config, grid, notes)
    down = [row for row in of_kind(strategy, "evaluate") if row.direction == "down"]
    assert {row.payload_bits for row in down} == {8 * len(notes.payloads["1-down"])}
    travelled = [c for c in grid.sent_content if c[FIELDS]["kind"] == "evaluate"]
    assert [len(a.data) for c in travelled for a in c[ARRAYS].values()] == [
        len(notes.payloads["1-down"])
    ] * 8
    up = [row for row in of_kind(strategy, "evaluate") if row.direction == "up"]
    assert {row.payload_bits for row in up} == {0}
    assert min(row.envelope_bits for row in up) > 0
    record = strategy.outcome.records[0]
    assert record.down_bits == strategy.outcome.ledger.totals("down").payload_bits


def kind_of(message):
    return message.content[FIELDS]["kind"]


def test_clients_that_cannot_evaluate_are_left_out_and_named():
    config = small(
        "rounds=2", "evaluate={every: 1, clients: true}", "failures.client_timeout_s=0.05"
    )

    def fault(message):
        client = message.metadata.dst_node_id - FIRST_NODE
        return "drop-reply" if kind_of(message) == "evaluate" and client == 3 else None

    def change(reply):
        if reply.has_content() and reply.content[FIELDS]["kind"] == "evaluate-reply":
            fields = reply.content[FIELDS]
            if fields["client_id"] == 5:
                fields["loss"] = float("nan")
            if fields["client_id"] == 6:
                fields["num_samples"] = 10**9
        return reply

    notes = Notes()
    strategy = play(config, LocalGrid(config, fault=fault, change=change), notes)
    assert sorted({(round, client) for round, client, _ in notes.failures}) == [
        (round, client) for round in (1, 2) for client in (3, 5, 6)
    ]
    for record in strategy.outcome.records:
        assert (record.participants, record.failures) == (8, 0)
        assert 0 < record.client_accuracy < 1


@pytest.mark.parametrize("transport", ["wire", "shared"])
def test_a_final_synchronisation_brings_every_client_to_the_servers_weights(tmp_path, transport):
    config = small(
        "rounds=6", "participants=2", "final_sync=true", f"transport={transport}", "model.hidden=8"
    )
    grid = {"wire": LocalGrid, "shared": SharingGrid}[transport](config, tmp_path)
    strategy = play(config, grid)
    server = strategy.outcome.server
    rows = of_kind(strategy, "sync")
    assert [(r.client_id, r.direction) for r in rows] == [
        (client, direction) for client in range(8) for direction in ("down", "up")
    ]
    assert {row.round for row in rows} == {7}
    states = found(strategy, tmp_path)
    assert [state.base_version for state in states] == [6] * 8
    for state in states:
        assert "pending" not in state.arrays
        if transport == "wire":
            held = model_sha256(state.arrays["base"], state.arrays["base"][:0])
            assert held == server.model_hash()


def test_the_final_synchronisation_is_the_only_difference(tmp_path):
    runs = []
    for final_sync in ("true", "false"):
        config = small("rounds=6", "participants=2", f"final_sync={final_sync}")
        runs.append(play(config, LocalGrid(config)))
    synced, plain = runs
    assert synced.outcome.server.model_hash() == plain.outcome.server.model_hash()
    assert of_kind(synced, "hello", "train") == of_kind(plain, "hello", "train")
    assert of_kind(plain, "sync") == []
    down = synced.outcome.ledger.totals("down", kind="sync").payload_bits
    assert down > 0
    recorded = sum(record.down_bits for record in synced.outcome.records)
    assert synced.outcome.ledger.totals("down").payload_bits == recorded + down


def test_a_synchronisation_settles_the_last_update(tmp_path):
    config = small("rounds=1", "final_sync=true", "failures.client_timeout_s=0.05")

    def fault(message):
        client = message.metadata.dst_node_id - FIRST_NODE
        return "late" if kind_of(message) == "train" and client == 2 else None

    strategy = play(config, LocalGrid(config, tmp_path, fault=fault))
    (run_id,) = {Slot(path).header()["run_id"] for path in tmp_path.glob("client-*")}
    from fedsbc.payload import decode

    for client in (1, 2):
        home = FileHome(tmp_path, run_id, client)
        before, after = home.load(2), home.load(3)
        assert (before.round, after.round) == (1, 2)
        expected = before.arrays["residual"].copy()
        if client == 2:
            pending = decode(before.arrays["pending"].tobytes(), strategy.outcome.server.layout)
            pending.add_to(expected)
        assert after.arrays["residual"].tobytes() == expected.tobytes()


def test_a_client_that_is_not_synchronised_is_named():
    config = small("rounds=1", "final_sync=true", "failures.client_timeout_s=0.05")

    def fault(message):
        client = message.metadata.dst_node_id - FIRST_NODE
        return "drop-request" if kind_of(message) == "sync" and client == 4 else None

    def change(reply):
        fields = reply.content[FIELDS]
        if fields["kind"] == "sync-reply" and fields["client_id"] == 1:
            fields["model"] = "0" * 16
        return reply

    notes = Notes()
    play(config, LocalGrid(config, fault=fault, change=change), notes)
    assert sorted((round, client) for round, client, _ in notes.failures) == [(2, 1), (2, 4)]
    assert any("holds model 0000" in reason for _, _, reason in notes.failures)
