"""Time and bytes of checkpoints: 400 clients of lenet5-caffe, 10 % of them in a round.

    python -m tests.benchmarks.checkpoint_cost [--rounds 40] [--every 10] [--clients 400]

Runs the experiment once and prints what each checkpoint cost and its share of the rounds; then runs
it again without checkpoints, stops it by Ctrl-C, and prints how long it took to be saved and gone.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

from fedsbc.run_folder import RunFolder
from tests.kills import num_rounds, stop
from tests.processes import ROOT, Command, wait_until

CONFIG = ROOT / "configs/demo/sbc.yaml"


def command(out: Path, rounds: int, every: int, clients: int) -> Command:
    """Start the experiment."""
    settings = (
        f"rounds={rounds}",
        f"checkpoint.every={every}",
        f"clients.count={clients}",
        "participation=0.1",
        "clients.optimizer.lr=0.05",  # ten samples a client: at the demo's rate SBC diverges
    )
    options = [word for setting in settings for word in ("--set", setting)]
    return Command("run", CONFIG, "--out", out, *options)


def costs(out: Path, rounds: int, every: int, clients: int) -> list[str]:
    """Run with checkpoints and return a table in Markdown."""
    status, said = command(out, rounds, every, clients).end()
    if status:
        sys.exit(said)
    records = RunFolder.open(out).rounds()
    lines = [
        "| after round | s | MB written | MB linked | states written | share of its rounds |",
        "|---|---|---|---|---|---|",
    ]
    for line in (out / "checkpoint/costs.jsonl").read_text().splitlines():
        cost = json.loads(line)
        before = [r.wall_s for r in records if cost["round"] - every < r.round <= cost["round"]]
        share = f"{cost['seconds'] / sum(before):.1%}" if before else "-"
        lines.append(
            f"| {cost['round']} | {cost['seconds']:.2f} | {cost['written_bytes'] / 1e6:.0f} "
            f"| {cost['linked_bytes'] / 1e6:.0f} | {cost['states_written']} | {share} |"
        )
    on_disk = sum(
        path.stat().st_blocks * 512 / path.stat().st_nlink
        for path in (out / "checkpoint").rglob("*")
        if path.is_file()
    )
    return [*lines, f"{on_disk / 1e6:.0f} MB on the disk, both generations together"]


def stopping(out: Path, rounds: int, clients: int) -> str:
    """Stop a run without checkpoints by Ctrl-C, and return how long that took."""
    stopped = command(out, 100 * rounds, 0, clients)
    wait_until(lambda: num_rounds(out) >= rounds, timeout_s=1800)
    started = time.monotonic()
    status, _ = stop(stopped, signal.SIGINT)
    seconds = time.monotonic() - started
    (line,) = (out / "checkpoint/costs.jsonl").read_text().splitlines()
    cost = json.loads(line)
    return (
        f"Ctrl-C after round {cost['round']}: exit status {status} after {seconds:.1f} s, of which "
        f"{cost['seconds']:.1f} s for {cost['states_written']} states, "
        f"{cost['written_bytes'] / 1e6:.0f} MB"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--clients", type=int, default=400)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".", prefix="runs-") as folder:
        place = Path(folder).resolve()
        print("\n".join(costs(place / "run", given.rounds, given.every, given.clients)))
        print(stopping(place / "stopped", given.rounds, given.clients))


if __name__ == "__main__":
    main()
