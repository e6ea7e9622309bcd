"""Kill a run -9 at random instants, resume it, and compare it with one that was not killed.

    python -m tests.benchmarks.kills [--times 20] [--seed 0]

The instants are spread over the whole life of the run, from its start to its end; every other time
checkpoints are slowed down, so that the kill comes in the middle of one. Some runs are killed again
while they resume. Ends with status 1 if a resumed run differs in a weight, a row or a residual.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from fedsbc.checkpoint import generations
from fedsbc.checkpoint.writing import PAUSE_VARIABLE
from tests.kills import ending, num_rounds, resume_to_end, run_to_end, start
from tests.processes import Command, wait_until


def killed_once(command: Command, wait_s: float, *, in_a_checkpoint: bool, out: Path) -> str:
    """Kill a run after some seconds, or in the first checkpoint after them; say where it was."""

    def is_building() -> bool:
        return any((out / "checkpoint").glob(".round-*/clients/*"))

    deadline = time.monotonic() + wait_s
    wait_until(lambda: time.monotonic() > deadline or command.process.poll() is not None)
    if in_a_checkpoint:
        wait_until(lambda: is_building() or command.process.poll() is not None)
    command.kill_all()
    saved = generations(out / "checkpoint")
    where = "in a checkpoint, " if is_building() else ""
    newest = f"round {saved[0].round} saved" if saved else "nothing saved"
    return f"{where}{num_rounds(out)} rounds done, {newest}"


def main() -> None:
    """Kill, resume, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw, differing = np.random.default_rng(given.seed), 0
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        started = time.monotonic()
        expected = run_to_end(Path(folder) / "undisturbed")
        life_s = time.monotonic() - started
        print(f"undisturbed: {life_s:.1f} s, {expected.model_sha256[:16]}", flush=True)
        for number in range(1, given.times + 1):
            out, slow = Path(folder) / "run", number % 2 == 0
            slowed = {PAUSE_VARIABLE: "0.05"} if slow else {}
            said = [
                killed_once(
                    start(out, **slowed), draw.uniform(0, life_s), in_a_checkpoint=slow, out=out
                )
            ]
            if number % 5 == 0 and generations(out / "checkpoint"):
                again, wait_s = Command("resume", out), draw.uniform(0, life_s)
                said.append(killed_once(again, wait_s, in_a_checkpoint=False, out=out))
            is_done = (out / "summary.json").exists()
            is_same = (ending(out) if is_done else resume_to_end(out)) == expected
            differing += not is_same
            verdict = "the same" if is_same else "DIFFERS"
            print(f"{number:3}: killed {', again '.join(said)}: {verdict}", flush=True)
            shutil.rmtree(out)
    print(f"{given.times - differing} of {given.times} runs ended as the undisturbed one")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
