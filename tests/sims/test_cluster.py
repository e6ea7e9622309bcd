"""Runs on a Ray cluster of two nodes: the bytes of one, and what happens when a node is lost."""

import pytest

from fedsbc.run_folder import RunFolder
from tests.clusters import two_nodes, wait_for_round
from tests.experiments import play, small
from tests.local_grid import LocalGrid
from tests.processes import Command

SETTINGS = ("participation=0.5", "rounds=8")
LONGER = ("participation=0.5", "rounds=40", "clients.local_steps=20")


@pytest.fixture
def cluster():
    with two_nodes() as cluster:
        yield cluster
        assert len(list(cluster.folder.glob("fedsbc-node-*"))) == cluster.was_killed


def reference(*overrides):
    """Play the same experiment in this process: every engine must give its bytes."""
    config = small(*overrides)
    strategy = play(config, LocalGrid(config))
    return strategy.outcome.server.model_hash(), strategy.outcome.ledger.rows


def outcome(folder):
    opened = RunFolder.open(folder)
    return opened.summary().model_sha256, opened.ledger().rows


def test_two_nodes_give_the_bytes_of_one(tmp_path, cluster):
    command = cluster.run(tmp_path / "run", *SETTINGS, "checkpoint.every=4")
    status, said = command.end()
    assert status == 0, said
    assert "2 actors on CPUs" in said
    assert outcome(tmp_path / "run") == reference(*SETTINGS)
    states = list((tmp_path / "run/checkpoint/round-000008/clients").iterdir())
    assert len(states) == 8, "those of both nodes"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow
@pytest.mark.parametrize("every", [5, 0])
def test_a_lost_node_costs_the_rounds_since_the_checkpoint_and_no_byte(tmp_path, cluster, every):
    out = tmp_path / "run"
    command = cluster.run(out, *LONGER, f"checkpoint.every={every}")
    wait_for_round(command, out, 12)
    cluster.kill_other()
    status, said = command.end()
    assert status == 0, said
    (line,) = [line for line in said.splitlines() if "going back" in line]
    where = "the checkpoint of round 1" if every else "the beginning (there is no checkpoint)"
    assert f"was lost, and the states of its clients with it: going back to {where}" in line
    assert line.endswith("on the 1 node that is left")
    assert outcome(out) == reference(*LONGER)


@pytest.mark.slow
def test_a_run_goes_on_elsewhere(tmp_path, cluster):
    # Begun on two nodes, gone on with on one machine without a cluster, and the other way round.
    for name, address in (("first", cluster.address), ("second", "null")):
        out = tmp_path / name
        begun = (*SETTINGS, "rounds=5", f"engine.address={address}")
        status, said = cluster.run(out, *begun, "checkpoint.every=5").end()
        assert status == 0, said
        config = out / "config.yaml"
        there = "null" if name == "first" else cluster.address
        lines = [
            f"  address: {there}" if line.startswith("  address:") else line
            for line in config.read_text().splitlines()
        ]
        config.write_text("\n".join(lines) + "\n")
        status, said = Command("resume", out, "--rounds", 8).end()
        assert status == 0, said
        assert outcome(out) == reference(*SETTINGS)


def test_without_a_cluster_there_is_one_clear_line(tmp_path):
    status, said = Command(
        *("run", "tests/small.yaml", "--out", tmp_path / "run"),
        *("--set", "engine.address=127.0.0.1:1"),
    ).end()
    assert status == 1
    last = said.splitlines()[-1]
    assert last.startswith("fedsbc: engine.address: 127.0.0.1:1: no Ray cluster can be joined")
    assert "ray start --head" in last
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("engine.address=ray://10.0.0.1:10001", "a driver outside the cluster cannot map"),
        ("record.deltas=true", "record.deltas: true writes to the run folder"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused(tmp_path, setting, reason):
    settings = ["--set", "engine.address=auto", "--set", setting]
    run = ("run", "tests/small.yaml", "--out", tmp_path / "run")
    status, said = Command(*run, *settings).end()
    assert status == 1
    assert reason in said.splitlines()[-1]
