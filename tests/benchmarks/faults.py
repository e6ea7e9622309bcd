"""What must hold at full size: 400 clients of lenet5-caffe, actors and Ray's head killed -9.

    python -m tests.benchmarks.faults actors        three actors are killed in a run of 30 rounds
    python -m tests.benchmarks.faults head          Ray's head is killed; `fedsbc resume` goes on
    python -m tests.benchmarks.faults descriptors   all 400 in a round, 1024 open files at most
    python -m tests.benchmarks.faults tiny          200 rounds of 10 clients, 10 parameters

The first two are compared with an undisturbed run: `model_sha256` and every row of the ledger.
Ends with status 1 where something does not hold.
"""

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from fedsbc.run_folder import RunFolder
from tests.kills import num_rounds
from tests.processes import Command, wait_until

ROUNDS = 30
SBC = {"name": "sbc", "density": 0.01}


def experiment(**more: Any) -> dict[str, Any]:
    """Return the config of 400 clients, 40 of them in each round."""
    config = {
        "name": "faults",
        "data": {"name": "mnist-5k", "partition": {"kind": "iid"}},
        "model": {"name": "lenet5-caffe"},
        "clients": {
            "count": 400,
            "local_steps": 10,
            "batch_size": 10,
            "optimizer": {"name": "sgd", "lr": 0.05},
        },
        "rounds": ROUNDS,
        "participation": 0.1,
        "upstream": SBC,
        "evaluate": {"every": 10},
        "checkpoint": {"every": 10},
    }
    return config | more


def start(out: Path, config: dict[str, Any]) -> Command:
    """Start a run; JSON is YAML."""
    path = out.with_suffix(".yaml")
    path.write_text(json.dumps(config))
    return Command("run", path, "--out", out)


def finish(command: Command) -> str:
    """Wait for a run, which must succeed; return what it said on standard error."""
    status, said = command.end()
    if status:
        sys.exit(said)
    return said


def pids_named(command: Command, name: bytes) -> list[int]:
    """Return the processes of a run whose command line holds a name."""
    return [pid for pid in command.pids() if name in Path(f"/proc/{pid}/cmdline").read_bytes()]


def ending(out: Path) -> tuple[object, ...]:
    """Return what must be the same in two runs."""
    folder = RunFolder.open(out)
    summary = folder.summary()
    print(f"{out.name}: {summary.model_sha256[:16]}, {summary.failures} failures", flush=True)
    return summary.model_sha256, summary.failures, folder.ledger().rows


def kill_actors(folder: Path) -> bool:
    """Kill a random actor in rounds 4, 12 and 20."""
    finish(start(folder / "undisturbed", experiment()))
    draw, command = np.random.default_rng(0), start(folder / "disturbed", experiment())
    for round in (4, 12, 20):
        wait_until(lambda round=round: num_rounds(folder / "disturbed") >= round)
        victim = int(draw.choice(pids_named(command, b"ray::ClientActor")))
        os.kill(victim, signal.SIGKILL)
    said = finish(command)
    print(f"{said.count('actor replaced')} actors were replaced")
    same = ending(folder / "disturbed") == ending(folder / "undisturbed")
    return same and said.count("actor replaced") == 3


def kill_head(folder: Path) -> bool:
    """Kill Ray's head in round 15, and resume."""
    finish(start(folder / "undisturbed", experiment()))
    command = start(folder / "disturbed", experiment())
    wait_until(lambda: num_rounds(folder / "disturbed") >= ROUNDS // 2)
    os.kill(pids_named(command, b"gcs_server")[0], signal.SIGKILL)
    status, said = command.end()
    print(f"status {status}: {said.splitlines()[-1]}; {len(command.pids())} processes are left")
    finish(Command("resume", folder / "disturbed"))
    return ending(folder / "disturbed") == ending(folder / "undisturbed") and status == 1


def few_descriptors(folder: Path) -> bool:
    """Run two rounds of all 400 with as many open files as an ordinary shell allows."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    finish(start(folder / "all", experiment(rounds=2, participation=1.0)))
    _, failures, rows = ending(folder / "all")
    print(f"{len(rows)} rows of the ledger")
    return failures == 0


def tiny_model(folder: Path) -> bool:
    """Measure what a round costs that computes next to nothing."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (1100, 1, 1), np.uint8), rng.integers(0, 2, 1100)
    data = folder / "data.npz"
    np.savez(data, x_train=x[100:], y_train=y[100:], x_test=x[:100], y_test=y[:100])
    config = experiment(
        data={"name": "npz", "path": str(data), "partition": {"kind": "iid"}},
        model={"name": "mlp", "hidden": 2, "input_shape": [1, 1, 1], "num_classes": 2},
        rounds=200,
        participation=1.0,
        evaluate={"every": 200},
        checkpoint={"every": 200},
    )
    config["clients"] |= {"count": 10, "local_steps": 1}
    finish(start(folder / "tiny", config))
    seconds = [record.wall_s for record in RunFolder.open(folder / "tiny").rounds()][1:]
    low, middle, high = (1000 * value for value in (min(seconds), median(seconds), max(seconds)))
    print(f"a round takes {middle:.1f} ms (median of 199; {low:.1f} to {high:.1f})")
    return ending(folder / "tiny")[1] == 0


CHECKS = {
    "actors": kill_actors,
    "head": kill_head,
    "descriptors": few_descriptors,
    "tiny": tiny_model,
}


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=CHECKS)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        holds = CHECKS[parser.parse_args().what](Path(folder))
    print("holds" if holds else "DOES NOT HOLD")
    sys.exit(not holds)


if __name__ == "__main__":
    main()
