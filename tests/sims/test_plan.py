"""`fedsbc plan`: what it predicts is what a run then takes, and the arithmetic adds up."""

import re

import pytest

from fedsbc import config as configs
from fedsbc.errors import ConfigError
from fedsbc.expected import expected_dense, expected_sum, expected_update
from fedsbc.layout import Layout
from fedsbc.ledger import Ledger
from fedsbc.run_folder import RunFolder
from sims import cli
from sims.plan_payloads import Shares, measured_shares, payloads
from sims.plan_target import Finished, target_of
from sims.planning import predict, steps_of, with_point
from tests.experiments import SMALL, initial, play, small
from tests.local_grid import SharingGrid

BASE = ("clients.count=20", "rounds=40", "participation=0.2")
THIN = (
    "network={profile: own, uplink_bit_s: 1e5, downlink_bit_s: 1e6, latency_s: 0.05,"
    " seconds_per_step: 0.02}"
)
RUNS = {
    "FedAvg, 3g, devices that differ": [
        "upstream={name: none}",
        "aggregation=examples",
        "network={profile: 3g, spread: {link: 0.4, step: 0.3}, seconds_per_step: 0.05}",
    ],
    "SBC up and STC down, lora": [
        "downstream={name: stc, density: 0.01}",
        "network={profile: lora, spread: {link: 0.2}}",
    ],
    "SBC up, lossless down, a thin link": [THIN],
    "TopK, a deadline, clients that come and go": [
        "upstream={name: topk, density: 0.02}",
        "downstream={name: sbc, density: 0.05}",
        THIN.replace("}", ", deadline_s: 0.6, spread: {link: 0.5}}"),
        "availability={kind: random, p: 0.5, dropout: 0.1}",
    ],
}


def simulated(config, folder):
    strategy = play(config, SharingGrid(config, folder))
    return sum(r.simulated_s for r in strategy.outcome.records), strategy.outcome.ledger


def predicted(config, shares=None):
    model, _ = initial(config)
    expected = payloads(config, model.layout, model.buffer_layout, shares or Shares())
    return predict(config, expected, config.rounds, steps_of(config)).seconds, expected


@pytest.mark.parametrize("name", RUNS)
def test_the_simulated_total_is_predicted_within_5_per_cent(tmp_path, name):
    config = small(*BASE, *RUNS[name])
    seconds, _ = simulated(config, tmp_path)
    assert seconds > 1
    assert predicted(config)[0] == pytest.approx(seconds, rel=0.05)


def test_where_clients_agree_a_finished_run_says_so(tmp_path):
    """With all clients in every round a sum has fewer non-zeros than independent ones give."""
    config = small(*BASE, THIN, "participation=1.0")
    seconds, ledger = simulated(config, tmp_path / "all")
    alone, expected = predicted(config)
    assert alone > 1.03 * seconds
    shares = measured_shares(ledger, expected)
    assert 0.5 < shares.down < 0.95
    assert 0.95 < shares.up < 1.1
    assert predicted(config, shares)[0] == pytest.approx(seconds, rel=0.01)


def test_buffers_are_in_it(tmp_path):
    config = small(
        "model={name: cnn-bn}", "clients.count=4", "participants=2", "rounds=6",
        "clients.local_steps=1", THIN,
    )  # fmt: skip
    seconds, _ = simulated(config, tmp_path)
    assert predicted(config)[0] == pytest.approx(seconds, rel=0.05)


def test_epochs_are_the_steps_of_each_client(tmp_path):
    config = small(
        "clients.local_steps=null", "clients.local_epochs=1", "rounds=3", THIN,
        "data.partition={kind: dirichlet, alpha: 0.5}",
    )  # fmt: skip
    assert len(set(steps_of(config).values())) > 1
    seconds, _ = simulated(config, tmp_path)
    assert predicted(config)[0] == pytest.approx(seconds, rel=0.05)


def test_expected_bits_of_what_is_sent_whole_are_exact():
    from fedsbc.payload import encode
    from tests.strategies.test_catch_up import dense

    layout = Layout.of([("a", (300, 20)), ("b", (70,)), ("c", ())])
    vector = layout.zeros() + 1
    assert expected_dense(layout).payload_bits == 8 * len(encode(dense(vector, layout)))


@pytest.mark.parametrize("name", ["sbc", "stc", "topk", "qsgd", "terngrad", "signsgd", "randomk"])
def test_expected_bits_of_a_normal_change(name):
    import numpy as np

    from fedsbc.compressors import make, options_for
    from fedsbc.payload import encode

    layout = Layout.of([("a", (300, 200)), ("b", (700,))])
    given = {"density": 0.01} if "density" in options_for(name).model_fields else {}
    scheme = make(options_for(name).model_validate(given))
    vector = np.random.default_rng(5).standard_normal(layout.size).astype(np.float32)
    draws = np.random.default_rng(1)
    update, _ = scheme.compress(vector, layout, scheme.init_state(layout), draws)
    expected = expected_update(scheme.options, layout)
    assert expected.payload_bits == pytest.approx(8 * len(encode(update)), rel=0.02)
    assert sum(expected.kept) == pytest.approx(update.num_kept, rel=0.02)


def test_the_expected_sum_of_independent_updates():
    import numpy as np

    from fedsbc.compressors import make, options_for
    from fedsbc.lossless import lossless_update
    from fedsbc.payload import encode

    layout = Layout.of([("a", (300, 200)), ("b", (700,))])
    scheme = make(options_for("topk")(density=0.02))
    total, draws = layout.zeros(), np.random.default_rng(2)
    for _ in range(10):
        vector = draws.standard_normal(layout.size).astype(np.float32)
        scheme.compress(vector, layout, {}, draws)[0].add_to(total)
    expected = expected_sum(expected_update(scheme.options, layout), layout, 10)
    found = 8 * len(encode(lossless_update(total, layout)))
    assert expected.payload_bits == pytest.approx(found, rel=0.02)


def plan(capsys, *arguments):
    status = cli.run(["plan", "--config", str(SMALL), *arguments])
    said = capsys.readouterr()
    return status, said.out if status == 0 else said.err


def table(text):
    """Return {(local steps, density): (rounds, is measured)} of a plan's grid."""
    rows = re.findall(r"^ *(\d+) +([\d.]+) +([\d,]+)(\*?) ", text, re.MULTILINE)
    return {(int(n), float(p)): (int(r.replace(",", "")), not star) for n, p, r, star in rows}


def test_the_arithmetic_of_the_recommended_point_adds_up(capsys):
    status, text = plan(
        capsys, "--network", "3g", "--set", "participation=0.5", "--target", "rounds=30"
    )
    assert status == 0
    assert "target: 30 rounds of 3 local steps" in text
    assert set(table(text)) == {(n, p) for n in (1, 3, 30) for p in (0.001, 0.01, 0.1)}
    assert {n: rounds for (n, _), (rounds, _) in table(text).items()} == {1: 90, 3: 30, 30: 3}
    line = re.search(r"slowest client: (.*) = ([\d.]+) s on average", text)
    parts = [float(part.split()[1]) for part in line[1].split(" + ")]
    assert sum(parts) == pytest.approx(float(line[2]), rel=1e-3)
    last = re.search(r"all of it: (\d+) rounds x ([\d.]+) s = ([\d.]+) s", text)
    assert int(last[1]) * float(last[2]) == pytest.approx(float(last[3]), rel=5e-3)
    marked = [row for row in text.splitlines() if row.endswith(" <")]
    assert len(marked) == 1
    assert re.search(r"recommended: (\d+) local steps", text)[1] == marked[0].split()[0]


def test_seconds_of_steps_make_the_delay_matter(capsys):
    _, text = plan(
        capsys, "--network", "lan", "--set", "network.seconds_per_step=5",
        "--local-steps", "1,10", "--densities", "0.01,1",
    )  # fmt: skip
    assert set(table(text)) == {(1, 0.01), (1, 1.0), (10, 0.01), (10, 1.0)}
    assert "steps 5 " in text, text


def test_another_network_has_its_own_links_and_the_config_its_devices(capsys, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(SMALL.read_text() + THIN.replace("network=", "network: ") + "\n")
    assert cli.run(["plan", "--config", str(path), "--network", "3g"]) == 0
    text = capsys.readouterr().out
    assert "latency 0.15 " in text, "there and back"
    assert "steps 0.6 " in text, "30 steps of 0.02 s"


@pytest.fixture
def finished(tmp_path):
    """A run folder as a run leaves it: accuracy 0.1, 0.2, ... in every round."""
    from dataclasses import replace

    config = small("rounds=5", "evaluate.every=1", "participation=1.0")
    strategy = play(config, SharingGrid(config, tmp_path / "states"))
    folder = RunFolder.create(tmp_path / "run", configs.to_yaml(config))
    for record in strategy.outcome.records:
        folder.append_round(replace(record, accuracy=record.round / 10))
    folder.write_ledger(strategy.outcome.ledger)
    return folder.path


def test_an_accuracy_is_what_a_finished_run_needed_for_it(capsys, finished):
    arguments = ["--network", "4g", "--run", str(finished)]
    status, text = plan(capsys, *arguments, "--target", "accuracy=0.35")
    assert status == 0
    assert "reached after 4 rounds of 3 local steps" in text
    assert table(text)[3, 0.01] == (4, True)
    assert table(text)[1, 0.01] == (12, False)
    assert "of the expected bits, as measured in the run" in text
    status, text = plan(capsys, *arguments, "--target", "accuracy=0.9")
    assert status == 1
    assert "never reached an accuracy of 0.9; its best is 0.5" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["network.profile: none", "--network 4g"]),
        (["--network", "4h"], ["'4h'", "known: 3g, 4g"]),
        (["--network", "own"], ["'own'", "known: 3g, 4g"]),
        (["--network", "4g", "--target", "accuracy=0.9"], ["--run RUN"]),
        (["--network", "4g", "--target", "rounds=0"], ["--target", "rounds=150"]),
        (["--network", "4g", "--target", "soon"], ["'soon'", "rounds=150"]),
        (["--network", "4g", "--local-steps", "1,x"], ["--local-steps", "1,10,100"]),
        (["--network", "4g", "--densities", "2"], ["--densities", "(0, 1]"]),
        (
            ["--network", "4g", "--densities", "0.1", "--set", "upstream={name: none}"],
            ["`none` has no density"],
        ),
        (["--network", "4g", "--run", "nowhere"], ["nowhere", "not a folder"]),
        (["--network", "4g", "--set", "network.profile=3g"], ["--network and --set", "one of"]),
    ],
)
def test_what_cannot_be_planned_is_one_line(capsys, arguments, words):
    status, error = plan(capsys, *arguments)
    assert status == 1
    assert len(error.splitlines()) == 1
    assert [word for word in words if word not in error] == []


def test_a_run_of_another_scheme_says_nothing(capsys, finished):
    given = [
        "--network",
        "4g",
        "--run",
        str(finished),
        "--set",
        "upstream={name: topk, density: 0.01}",
    ]
    status, error = plan(capsys, *given)
    assert status == 1
    assert "a run with upstream `sbc` says nothing about `topk`" in error


def test_targets():
    assert target_of("rounds=150", 10, []).num_rounds((10, 0.1)) == 150
    assert target_of("rounds=150", 10, []).num_rounds((7, 0.1)) == 215
    assert target_of("rounds=3", 7 / 3, []).num_rounds((7 / 3, None)) == 3
    assert target_of("steps=1501", 10, []).num_rounds((10, 0.1)) == 151
    with pytest.raises(ConfigError):
        target_of("accuracy=1.5", 10, [])


def test_a_ledger_without_messages_says_nothing():
    config = small(THIN)
    assert measured_shares(Ledger(), predicted(config)[1]) == Shares()


def test_points_change_steps_and_density_alone():
    config = small(THIN)
    changed = with_point(config, 7, 0.5)
    assert (changed.clients.local_steps, changed.upstream.density) == (7, 0.5)
    assert with_point(changed, 3, 0.01) == config
    assert isinstance(Finished(SMALL, config, [], Ledger()).point, tuple)
