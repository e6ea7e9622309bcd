"""The Ray engine, for real: determinism, dead actors, failing clients, nothing left behind.

Runs are processes of their own, as a user starts them.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fedsbc.run_folder import RunFolder
from tests.experiments import initial_hash, play, small
from tests.local_grid import LocalGrid

SMALL = Path(__file__).parent.parent / "small.yaml"
DIVERGING = ("clients.optimizer.lr=1e38", "failures.abort_after=2")


def start(out: Path, *overrides: str) -> subprocess.Popen[str]:
    """Start `fedsbc run` of the small experiment in a session of its own."""
    command = [sys.executable, "-m", "sims.cli", "run", str(SMALL), "--out", str(out)]
    for override in overrides:
        command += ["--set", override]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def run(out: Path, *overrides: str) -> tuple[int, str]:
    """Run the small experiment; return the exit status and what was written to stderr."""
    process = start(out, *overrides)
    _, errors = process.communicate(timeout=200)
    return process.returncode, errors


def session_pids(session: int, name: bytes = b"") -> list[int]:
    """Return the processes of a session whose command line holds a name."""
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == session:
                command = (entry / "cmdline").read_bytes()
                if name in command:
                    pids.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return pids


def outcome(folder: Path):
    opened = RunFolder.open(folder)
    return opened.summary().model_sha256, opened.ledger().rows


@pytest.fixture(scope="module")
def reference():
    """The same experiment without Ray: every engine must give its bytes."""
    config = small("participation=0.5", "rounds=4")
    strategy = play(config, LocalGrid(config))
    return strategy.outcome.server.model_hash(), strategy.outcome.ledger.rows


@pytest.mark.parametrize("actors", [1, 2, 4])
def test_any_number_of_actors_gives_the_same_bytes(tmp_path, reference, actors):
    # pitfalls 12 and 17
    options = [f"engine.actors={actors}", "engine.cpus_per_actor=0.5"]
    status, errors = run(tmp_path / "run", "participation=0.5", "rounds=4", *options)
    assert status == 0, errors
    assert outcome(tmp_path / "run") == reference


def test_weights_that_are_really_sent_give_the_same_bytes(tmp_path, reference):
    status, errors = run(tmp_path / "run", "participation=0.5", "rounds=4", "transport=wire")
    assert status == 0, errors
    assert outcome(tmp_path / "run") == reference


def test_a_killed_actor_is_replaced_and_changes_no_byte(tmp_path):
    # pitfall 9
    options = ("rounds=30", "clients.local_steps=20")
    assert run(tmp_path / "undisturbed", *options)[0] == 0
    process, num_killed = start(tmp_path / "disturbed", *options), 0
    rounds = tmp_path / "disturbed" / "rounds.jsonl"
    while process.poll() is None and num_killed < 2:
        num_rounds = len(rounds.read_text().splitlines()) if rounds.exists() else 0
        actors = session_pids(process.pid, b"ray::ClientActor")
        if actors and num_rounds > 8 * num_killed:
            os.kill(actors[0], signal.SIGKILL)
            num_killed += 1
        time.sleep(0.02)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert num_killed == 2
    assert errors.count("actor replaced") == 2
    assert RunFolder.open(tmp_path / "disturbed").summary().failures == 0
    assert outcome(tmp_path / "disturbed") == outcome(tmp_path / "undisturbed")


def wait_for_round(process: subprocess.Popen[str], folder: Path) -> None:
    """Wait until a run has closed its first round."""
    while process.poll() is None and not (folder / "rounds.jsonl").exists():
        time.sleep(0.05)
    assert process.poll() is None


def wait_until_gone(session: int) -> list[int]:
    """Return the processes of a session that are still there after a while."""
    deadline = time.monotonic() + 20
    while session_pids(session, b"ray") and time.monotonic() < deadline:
        time.sleep(0.1)
    return session_pids(session, b"ray")


def test_a_client_that_hangs_is_a_failure_and_its_actor_is_replaced(tmp_path):
    options = ("rounds=40", "clients.local_steps=20", "failures.client_timeout_s=15")
    process = start(tmp_path / "run", *options, "engine.actors=1")
    wait_for_round(process, tmp_path / "run")
    os.kill(session_pids(process.pid, b"ray::ClientActor")[0], signal.SIGSTOP)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert "actor replaced: no reply within 15 s (failures.client_timeout_s)" in errors
    assert RunFolder.open(tmp_path / "run").summary().failures == 1


@pytest.mark.parametrize("head", [b"gcs_server", b"raylet"])
def test_without_its_head_a_run_ends_in_order(tmp_path, monkeypatch, head):
    with tempfile.TemporaryDirectory(prefix="f") as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        process = start(tmp_path / "run", "rounds=5000")
        wait_for_round(process, tmp_path / "run")
        heads = [
            pid
            for pid in session_pids(process.pid, b"/" + head)
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].endswith(head)
        ]
        os.kill(heads[0], signal.SIGKILL)
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 1, errors
        last_line = errors.splitlines()[-1]
        assert last_line.startswith(f"fedsbc: Ray's process {head.decode()} has died"), errors
        assert "fedsbc resume" in last_line
        assert wait_until_gone(process.pid) == []
        assert list(Path(temporary).iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_clients_that_all_fail_end_the_run_with_one_clear_line(tmp_path):
    # pitfall 8: with this learning rate every change is infinite
    status, errors = run(tmp_path / "run", *DIVERGING)
    assert status == 1
    assert "Traceback" not in errors
    assert "2 rounds in a row could not be used" in errors.splitlines()[-1]
    log = (tmp_path / "run" / "errors.log").read_text()
    assert "round 1, client 3" in log
    assert "Traceback" in log
    summary = RunFolder.open(tmp_path / "run").summary()
    assert not summary.completed
    assert summary.failures == 16
    assert summary.model_sha256 == initial_hash(small()), "untouched"


@pytest.mark.parametrize("overrides", [("rounds=1",), DIVERGING], ids=["success", "failure"])
def test_nothing_is_left_behind(tmp_path, monkeypatch, overrides):
    with tempfile.TemporaryDirectory(prefix="f") as temporary:  # sockets need a short path
        monkeypatch.setenv("TMPDIR", temporary)
        process = start(tmp_path / "run", *overrides)
        process.communicate(timeout=200)
        assert list(Path(temporary).iterdir()) == []
    deadline = time.monotonic() + 10
    while session_pids(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert session_pids(process.pid) == []
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
