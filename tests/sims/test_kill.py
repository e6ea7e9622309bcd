"""Runs on Ray that are killed or stopped: resumed, they end as if nothing had happened."""

import os
import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest

from fedsbc.checkpoint import generations
from fedsbc.checkpoint.writing import PAUSE_VARIABLE
from tests.kills import ending, kill_when, num_rounds, resume_to_end, run_to_end, start, stop
from tests.processes import Command, wait_until

pytestmark = pytest.mark.slow  # real processes and Flower's polling: minutes


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run_to_end(tmp_path_factory.mktemp("undisturbed") / "run")


@pytest.fixture
def temporary(monkeypatch):
    """A folder for temporary files, so that what is left behind shows."""
    with tempfile.TemporaryDirectory(prefix="f") as name:  # sockets need a short path
        monkeypatch.setenv("TMPDIR", name)
        yield Path(name)


def check_nothing_left(command: Command, out: Path, temporary: Path) -> None:
    wait_until(lambda: not command.pids())
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("seed", [0])
def test_kill_9_at_a_random_instant(tmp_path, temporary, undisturbed, seed):
    # pitfall 19
    draw, out = np.random.default_rng(seed), tmp_path / "run"
    after, wait_s = int(draw.integers(1, 29)), float(draw.uniform(0, 0.2))
    kill_when(start(out), lambda: num_rounds(out) >= after, wait_s)
    assert not (out / "summary.json").exists(), "it was killed before its end"
    assert resume_to_end(out) == undisturbed
    assert [path.name for path in tmp_path.iterdir()] == ["run"], "no scratch folder of the killed"
    assert list(temporary.iterdir()) == [], "no folder of the killed run's Ray"


def test_kill_9_in_the_middle_of_a_checkpoint(tmp_path, undisturbed):
    # pitfall 20
    out = tmp_path / "run"
    command = start(out, **{PAUSE_VARIABLE: "0.3"})
    building = out / "checkpoint/.round-000006/clients"
    kill_when(command, lambda: building.exists() and any(building.iterdir()))
    assert building.exists(), "it was killed in the middle"
    assert [generation.round for generation in generations(out / "checkpoint")] == [3]
    assert resume_to_end(out) == undisturbed
    assert not building.exists()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
@pytest.mark.parametrize("every", ["3", "null"])
def test_a_stopped_run_is_saved_and_leaves_no_process(
    tmp_path, temporary, undisturbed, number, status, every
):
    out = tmp_path / "run"
    command = start(out, f"checkpoint.every={every}")
    wait_until(lambda: num_rounds(out) >= 7)
    ended, said = stop(command, number)
    assert ended == status, said
    round = generations(out / "checkpoint")[0].round
    assert round >= 7
    assert f"round {round} is saved; to go on: fedsbc resume {out}" in said
    assert said.splitlines()[-1] == "fedsbc: interrupted"
    check_nothing_left(command, out, temporary)
    if every == "3":
        assert resume_to_end(out) == undisturbed


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
def test_a_run_that_is_stopped_while_it_starts_leaves_nothing(tmp_path, temporary, number, status):
    out = tmp_path / "run"
    command = start(out)
    wait_until(lambda: any(temporary.glob("fedsbc-*/session_*")))  # Ray is starting
    ended, said = stop(command, number)
    assert ended == status, said
    wait_until(lambda: not command.pids())
    assert list(tmp_path.iterdir()) == []
    assert list(temporary.iterdir()) == []


def test_two_processes_cannot_be_at_work_on_one_run(tmp_path):
    out = tmp_path / "run"
    command = start(out, "rounds=3000")
    try:
        wait_until(lambda: num_rounds(out) >= 4)
        status, said = Command("resume", out).end()
        assert status == 1
        assert said.splitlines()[-1].startswith(f"fedsbc: {out}: another process is at work on")
        before = num_rounds(out)
        wait_until(lambda: num_rounds(out) > before)
    finally:
        command.kill_all()


def test_a_run_that_ended_is_extended_from_the_command_line(tmp_path, undisturbed):
    out = tmp_path / "run"
    shorter = run_to_end(out, "rounds=10")
    assert max(shorter.rounds) == 10
    status, said = Command("resume", out, "--rounds", 30).end()
    assert status == 0, said
    assert "going on after round 10" in said
    assert ending(out) == undisturbed
    assert os.path.getsize(out / "report.html") > 10_000
