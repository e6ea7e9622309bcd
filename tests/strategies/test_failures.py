"""What a run does about clients that raise, lie or have nothing: the round goes on without them."""

import numpy as np
import pytest

import clients.app as client_app
from fedsbc.compressors import make, options_for
from fedsbc.errors import RunError
from fedsbc.layout import Layout
from fedsbc.message import ARRAYS, FIELDS
from fedsbc.progress import Progress
from fedsbc.run_folder import RunFolder
from strategies.journal import RunJournal
from strategies.server import Server
from tests.experiments import Notes, initial, initial_hash, play, small
from tests.local_grid import LocalGrid


@pytest.fixture
def raising(monkeypatch):
    """Let some clients raise when they train."""

    def install(ids):
        original = client_app.train_round

        def train(worker, home, client_id, request, arrays, **options):
            if client_id in ids:
                raise KeyError("no such thing")
            return original(worker, home, client_id, request, arrays)

        monkeypatch.setattr(client_app, "train_round", train)

    return install


def test_pitfall_7_a_client_that_raises_is_one_line_and_a_traceback(tmp_path, capsys, raising):
    raising([2])
    config = small("rounds=2")
    folder = RunFolder.create(tmp_path / "run", "name: a\n")
    journal = RunJournal(folder, Progress(2, "a"), keep_payloads=False)
    strategy = play(config, LocalGrid(config), journal)
    assert [r.participants for r in strategy.outcome.records] == [7, 7]
    said = capsys.readouterr()
    lines = [line for line in (said.out + said.err).splitlines() if "client 2" in line]
    assert len(lines) == 2
    assert "round 1, client 2: KeyError: 'no such thing'" in lines[0]
    log = (folder.path / "errors.log").read_text()
    assert log.count("Traceback") == 2
    assert "round 2, client 2" in log


def test_pitfall_7_the_policy_may_end_the_run(raising):
    raising([2])
    config = small("failures.on_client_error=fail")
    with pytest.raises(RunError, match=r"round 1, client 2: KeyError: 'no such thing'"):
        play(config, LocalGrid(config))


def test_pitfall_10_if_all_fail_model_residual_and_history_stay(raising):
    config = small("downstream={name: topk, density: 0.05}", "failures.abort_after=3")
    notes, grid = Notes(), LocalGrid(config)
    raising(range(8))
    with pytest.raises(RunError, match="3 rounds in a row could not be used"):
        play(config, grid, notes)
    assert notes.payloads == {}
    assert [r.participants for r in notes.records] == [0, 0, 0]
    assert [r.failures for r in notes.records] == [8, 8, 8]
    aborted = [reason for _, client, reason in notes.failures if client is None]
    assert (
        aborted == ["round aborted, the model is unchanged: 0 usable replies, min_replies is 1"] * 3
    )


def test_pitfall_10_an_aborted_round_changes_nothing_but_the_version():
    layout = Layout.of([("a", (4,))])
    scheme = make(options_for("topk")(density=0.25))
    empty = Layout(())
    server = Server(layout, empty, layout.zeros(), empty.zeros(), scheme, 0)
    server.close_round(1, np.array([4, 3, 2, 1], np.float32), None)
    weights, residual = server.weights.copy(), server.residual.copy()
    assert residual.any()
    assert server.close_round(2, None, None) == b""
    server.weights[0] = 3e38
    with pytest.raises(RunError, match="not finite"):
        server.close_round(3, np.array([3e38, 0, 0, 0], np.float32), None)
    assert server.residual.tobytes() == residual.tobytes()
    assert server.weights[1:].tobytes() == weights[1:].tobytes()
    assert server.version == 2
    assert server.downlink(1).bits.payload_bits == 0


def test_pitfalls_21_22_clients_without_samples_are_reported_and_do_no_harm():
    """Dirichlet 0.05 over 400 clients: every client trains, or is said to be empty."""
    config = small(
        "clients.count=400",
        "data.partition={kind: dirichlet, alpha: 0.05, min_size: 0}",
        "rounds=1",
        "aggregation=examples",
    )
    notes, grid = Notes(), LocalGrid(config)
    strategy = play(config, grid, notes)
    replies = [c[FIELDS] for c in grid.received_content if c[FIELDS]["kind"] == "train-reply"]
    empty = sorted(reply["client_id"] for reply in replies if reply["num_samples"] == 0)
    trained = [reply for reply in replies if reply["num_steps"] == 3]
    assert 0 < len(empty) < 400
    assert len(trained) + len(empty) == 400
    (said,) = notes.said
    assert said.startswith(f"{len(empty)} of 400 clients have no samples and train nothing: ")
    assert said.split(": ")[1].split(", ")[:3] == [str(client) for client in empty[:3]]
    assert strategy.outcome.records[0].participants == 400
    assert np.isfinite(strategy.outcome.server.weights).all()
    assert strategy.outcome.server.model_hash() != initial_hash(config)


@pytest.mark.parametrize("aggregation", ["mean", "examples", "vote"])
def test_pitfall_21_a_cohort_without_samples_changes_nothing(monkeypatch, aggregation):
    from clients.worker import Worker

    monkeypatch.setattr(Worker, "rows", lambda self, client: np.zeros(0, np.int64))
    config = small("rounds=2", f"aggregation={aggregation}", "upstream={name: topk, density: 0.1}")
    strategy = play(config, LocalGrid(config))
    assert [r.participants for r in strategy.outcome.records] == [8, 8]
    assert strategy.outcome.server.model_hash() == initial_hash(config)


def test_pitfall_15_a_missing_node_config_key_has_a_name():
    config = small()
    grid = LocalGrid(config)
    original = grid.context

    def without(node):
        context = original(node)
        del context.node_config["partition-id"]
        return context

    grid.context = without
    with pytest.raises(
        RunError, match="node config: partition-id is None; expected a whole number"
    ):
        play(config, grid)


def test_pitfall_15_simulation_and_devices_run_the_same_app(monkeypatch):
    import tomllib
    from pathlib import Path

    import sims.actor

    text = (Path(sims.actor.__file__).parent.parent / "pyproject.toml").read_text()
    components = tomllib.loads(text)["tool"]["flwr"]["app"]["components"]
    assert components["clientapp"] == "clients.app:app"
    monkeypatch.setattr(sims.actor, "Counter", lambda path, index: None)
    actor = sims.actor.ClientActor({}, {}, Path())
    assert actor._app is client_app.app


def test_pitfall_16_weights_are_renormalised_over_those_who_took_part(raising):
    """A mean over five of eight clients is the mean of a run in which the five are alone."""
    config = small("rounds=1", "upstream={name: none}")
    everyone, notes = LocalGrid(config), Notes()
    play(config, everyone, notes)
    sent = {
        c[FIELDS]["client_id"]: c[ARRAYS]["update"].data
        for c in everyone.received_content
        if c[FIELDS]["kind"] == "train-reply"
    }
    raising([0, 3, 6])
    some = play(config, LocalGrid(config)).outcome.server
    from fedsbc.payload import decode

    changes = [decode(sent[i], some.layout).to_dense() for i in (1, 2, 4, 5, 7)]
    before = initial(config)[0].weights
    np.testing.assert_allclose(some.weights - before, np.mean(changes, axis=0), atol=1e-6)


def test_pitfall_16_participation_of_a_tenth_converges():
    config = small(
        "clients.count=40",
        "participation=0.1",
        "rounds=60",
        "clients.local_steps=10",
        "clients.optimizer.lr=0.1",
        "upstream.density=0.05",
    )
    strategy = play(config, LocalGrid(config))
    from fedsbc.data import load
    from fedsbc.evaluation import evaluate

    data, (model, _) = load(config.data), initial(config)
    model.load(strategy.outcome.server.weights)
    assert evaluate(model, data.test_images, data.y_test).accuracy > 0.8
    counts = [r.participants for r in strategy.outcome.records]
    assert counts == [4] * 60
