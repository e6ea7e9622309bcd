"""Kill a run -9 at random instants, resume it, and compare it with one that was not killed.

    python -m tests.benchmarks.kills [--times 20] [--seed 0]

The instants are spread over the rounds of the run and fall anywhere within one; every other time
checkpoints are slowed down, so that the kill comes in the middle of one. Some resumed runs are
killed again. Ends with status 1 if a resumed run differs in a weight, a row or a residual.
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

NUM_ROUNDS = 30
"""Of the run, see `tests.kills.SETTINGS`."""

WITHIN_S = 0.5
"""A kill comes so long after the end of a round, at most: a few rounds, or a checkpoint."""


def killed_once(
    command: Command, rounds: int, wait_s: float, *, in_a_checkpoint: bool, out: Path
) -> str:
    """Kill a run some time after a number of rounds, or in the first checkpoint after that.

    Returns:
        Where it was.
    """

    def is_building() -> bool:
        return any((out / "checkpoint").glob(".round-*/clients/*"))

    wait_until(lambda: num_rounds(out) >= rounds or command.process.poll() is not None)
    time.sleep(wait_s)
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
        expected = run_to_end(Path(folder) / "undisturbed")
        print(f"undisturbed: {expected.model_sha256[:16]}", flush=True)
        for number in range(1, given.times + 1):
            out, slow = Path(folder) / "run", number % 2 == 0
            slowed = {PAUSE_VARIABLE: "0.05"} if slow else {}
            rounds, wait_s = int(draw.integers(0, NUM_ROUNDS)), draw.uniform(0, WITHIN_S)
            run = start(out, **slowed)
            said = [killed_once(run, rounds, wait_s, in_a_checkpoint=slow, out=out)]
            if number % 5 == 0 and generations(out / "checkpoint"):
                again, rounds = Command("resume", out), int(draw.integers(rounds, NUM_ROUNDS))
                said.append(killed_once(again, rounds, wait_s, in_a_checkpoint=False, out=out))
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
