"""Runs that are killed or stopped at an instant, and what they end with after a resume."""

import hashlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fedsbc.checkpoint import generations
from fedsbc.ledger import LedgerRow
from fedsbc.run_folder import RunFolder
from fedsbc.state_slot import Slot
from tests.processes import Command, wait_until

SMALL = Path(__file__).parent / "small.yaml"
SETTINGS = (
    "rounds=30",
    "participation=0.5",
    "checkpoint.every=3",
    "downstream={name: sbc, density: 0.05}",
    "engine.actors=1",
)


@dataclass(frozen=True)
class Ending:
    """What a run ended with: all of it that must be the same bytes."""

    model_sha256: str
    rows: list[LedgerRow]
    rounds: list[int]
    states: dict[str, str]
    """Client, round and name of an array -> sha256: residual, pending update, momentum."""


def ending(out: Path) -> Ending:
    """Read what a run that ended left behind; its last checkpoint holds the clients' states."""
    folder = RunFolder.open(out)
    (last, *_) = generations(out / "checkpoint")
    states = {}
    for path in sorted((last.path / "clients").iterdir()):
        slot = Slot(path)
        header = slot.header()
        assert header is not None
        for name, array in slot.arrays(header).items():
            digest = hashlib.sha256(array.tobytes()).hexdigest()
            states[f"{path.stem} round {header['round']} {name}"] = digest
    return Ending(
        folder.summary().model_sha256,
        folder.ledger().rows,
        [record.round for record in folder.rounds()],
        states,
    )


def start(out: Path, *settings: str, **environment: str) -> Command:
    """Start the small experiment as a process of its own."""
    options = [word for setting in (*SETTINGS, *settings) for word in ("--set", setting)]
    return Command("run", SMALL, "--out", out, *options, **environment)


def run_to_end(out: Path, *settings: str) -> Ending:
    """Run the small experiment undisturbed."""
    status, said = start(out, *settings).end()
    assert status == 0, said
    return ending(out)


def resume_to_end(out: Path) -> Ending:
    """Go on with a run; one that was killed before its first checkpoint begins anew."""
    if not generations(out / "checkpoint"):
        if (out / "config.yaml").exists():
            status, said = Command("resume", out).end()
            assert (status, "nothing to resume" in said) == (1, True), said
        shutil.rmtree(out, ignore_errors=True)
        return run_to_end(out)
    status, said = Command("resume", out).end()
    assert status == 0 or "rounds are done" in said, said
    return ending(out)


def num_rounds(out: Path) -> int:
    """Return how many rounds a run has written so far."""
    path = out / "rounds.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def kill_when(command: Command, is_so: Callable[[], bool], wait_s: float = 0.0) -> None:
    """Kill -9 a run and all that it started, some time after something is so."""
    wait_until(lambda: is_so() or command.process.poll() is not None)
    time.sleep(wait_s)
    command.kill_all()


def stop(command: Command, number: signal.Signals) -> tuple[int, str]:
    """Send a signal as a terminal (Ctrl-C) or a supervisor does; return how the run ended."""
    if number == signal.SIGINT:
        os.killpg(command.process.pid, number)
    else:
        os.kill(command.process.pid, number)
    return command.end()
