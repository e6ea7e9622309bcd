"""What a round costs with more clients, more participants, and a large model.

    python -m tests.benchmarks.scaling clients OUT.json       50 to 1600 clients, 40 a round
    python -m tests.benchmarks.scaling participants OUT.json  400 clients, 10 to 400 a round
    python -m tests.benchmarks.scaling large OUT.json         400 clients of 5 M parameters

Runs are `fedsbc run` as processes of their own; the seconds of a round are those of
`rounds.jsonl`, the first round left out. Memory is watched from outside: proportional set sizes of
all processes, of which the anonymous part is what cannot be paged out to the states' files.
`tests.benchmarks.scaling_page` makes tables and a plot of the first two.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from fedsbc.environment import describe
from fedsbc.run_folder import RunFolder
from sims.bench.jobs import NUM_WORKERS, Job, write_data
from sims.deploy.processes import Processes
from tests.processes import ROOT

SBC = {"name": "sbc", "density": 0.01}
CLIENTS = [(count, 40) for count in (50, 100, 200, 400, 1600)]
PARTICIPANTS = [(400, cohort) for cohort in (10, 40, 160, 400)]
MOST_ROUNDS, LEAST_ROUNDS, PARTICIPANTS_IN_ALL = 9, 5, 900
"""Rounds of a point: fewer where they are long."""

FIELDS = ("Pss", "Pss_Anon", "Pss_File", "Pss_Shmem")
SAMPLE_EVERY_S = 0.5

Figures = dict[str, Any]


def memory_of(pids: list[int]) -> dict[str, int]:
    """Return the bytes of some processes together, by the kernel's field."""
    sums = dict.fromkeys(FIELDS, 0)
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # it has just ended
        for line in lines:
            name, _, rest = line.partition(":")
            if name in sums:
                sums[name] += int(rest.split()[0]) * 1024
    return sums


def num_lines(path: Path) -> int:
    """Return the lines of a file; 0 if it is not there."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, its threads together; 0.0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_per_round(spent: dict[int, tuple[float, float]]) -> tuple[float, float]:
    """Return the CPU seconds of a round from those at the ends of some: of all, of the driver."""
    first, last = min(spent), max(spent)
    every, driver = (b - a for a, b in zip(spent[first], spent[last], strict=True))
    return every / max(1, last - first), driver / max(1, last - first)


def run(config: Path, rounds: int, *, watch: bool = False, more: tuple[str, ...] = ()) -> Figures:
    """Run a config and return the seconds of its rounds, and its peaks where it is watched.

    CPU time is that of a round, first to last: it is what a busy machine changes least.
    """
    options = [word for each in (f"rounds={rounds}", *more) for word in ("--set", each)]
    with tempfile.TemporaryDirectory(dir=ROOT, prefix="runs-") as name:
        folder = Path(name)
        (folder / "work").mkdir()
        out, peaks = folder / "run", dict.fromkeys(FIELDS, 0)
        disk, spent = 0, {}
        environment = {"PYTHONPATH": str(ROOT)}
        started = time.monotonic()
        with Processes(folder / "work", environment) as processes:
            command = [sys.executable, "-m", "sims.cli", "run", str(config), "--out", str(out)]
            processes.start("run", [*command, *options])
            (driver,) = processes.left_over()
            while processes.status("run") is None:
                done = num_lines(out / "rounds.jsonl")
                if done and done not in spent:
                    all_s = sum(map(cpu_seconds, processes.left_over()))
                    spent[done] = (all_s, cpu_seconds(driver))
                if watch:
                    now = memory_of(processes.left_over())
                    peaks = {field: max(peaks[field], now[field]) for field in FIELDS}
                    disk = max(disk, bytes_below(folder))
                time.sleep(SAMPLE_EVERY_S if watch else 0.05)
            if processes.status("run"):
                sys.exit(processes.log("run"))
        seconds = [record.wall_s for record in RunFolder.open(out).rounds()]
        figures: Figures = {"round_s": seconds, "whole_s": time.monotonic() - started}
        figures["cpu_s"], figures["driver_cpu_s"] = cpu_per_round(spent)
        if watch:
            figures |= {"peak_bytes": peaks, "disk_bytes": disk}
            figures["model_sha256"] = RunFolder.open(out).summary().model_sha256
        return figures


def bytes_below(folder: Path) -> int:
    """Return what the files of a folder take on the disk."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(path, name)).st_blocks * 512
            except OSError:
                continue  # it was just replaced
    return total


def series(points: list[tuple[int, int]], out: Path, about: Figures) -> None:
    """Run lenet5-caffe at each point, print its figures as they come, and write them."""
    rows: list[Figures] = []
    with tempfile.TemporaryDirectory(prefix="fsb-") as name:
        data = Path(name) / "data.npz"
        write_data(data)
        for clients, cohort in points:
            rounds = max(LEAST_ROUNDS, min(MOST_ROUNDS, PARTICIPANTS_IN_ALL // cohort))
            job = Job("scaling", "lenet5-caffe", clients, cohort, rounds)
            config = Path(name) / "config.yaml"
            config.write_text(job.as_config(data, SBC))
            figures = run(config, rounds)
            seconds = figures["round_s"][1:]
            driver_ms = 1000 * figures["driver_cpu_s"] / cohort
            all_ms = 1000 * figures["cpu_s"] / cohort
            rows.append({"clients": clients, "participants": cohort, **figures})
            print(
                f"{clients:5} clients, {cohort:3} a round: {median(seconds):.3f} s a round "
                f"[{min(seconds):.3f}, {max(seconds):.3f}], {1 / median(seconds):.2f} rounds/s, "
                f"a participant takes {1000 * median(seconds) / cohort:.1f} ms, {all_ms:.1f} ms of "
                f"CPU, {driver_ms:.2f} ms of it the driver's; {figures['whole_s']:.0f} s in all",
                flush=True,
            )
            out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


def large(all_of_them: bool) -> Figures:
    """Run `configs/scaling/large.yaml` and print its peaks."""
    rounds, more = (2, ("participants=400",)) if all_of_them else (3, ())
    figures = run(ROOT / "configs/scaling/large.yaml", rounds, watch=True, more=more)
    peaks = {field: f"{value / 2**30:.2f} GiB" for field, value in figures["peak_bytes"].items()}
    print(f"peaks: {peaks}; on the disk: {figures['disk_bytes'] / 2**30:.2f} GiB")
    print(f"rounds: {', '.join(f'{s:.1f} s' for s in figures['round_s'])}")
    return figures


def main() -> None:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["clients", "participants", "large"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--all", action="store_true", help="large: all 400 in each of 2 rounds")
    given = parser.parse_args()
    about: Figures = {"environment": describe(), "workers": NUM_WORKERS}
    if given.what == "large":
        given.out.write_text(json.dumps(about | large(given.all), indent=1) + "\n")
    else:
        series(CLIENTS if given.what == "clients" else PARTICIPANTS, given.out, about)


if __name__ == "__main__":
    main()
