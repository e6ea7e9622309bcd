"""Runs for `gpu_check`: as processes of their own, watched from outside."""

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from fedsbc.run_folder import RunFolder
from sims.deploy.processes import Processes
from tests.benchmarks.scaling import memory_of, num_lines
from tests.processes import ROOT

SAMPLE_EVERY_S = 0.25


@dataclass(frozen=True)
class Ran:
    """What a run gave: seconds a round, hash, last accuracy, and memory over time, in bytes."""

    round_s: float
    model_sha256: str
    accuracy: float
    memory: list[int]


def run(config: Path, rounds: int, *settings: str) -> Ran:
    """Run a config as a process of its own; memory is watched between the first and last round."""
    with tempfile.TemporaryDirectory(prefix="fsb-") as name:
        folder, memory = Path(name), []
        (folder / "work").mkdir()
        all_settings = [*settings, f"rounds={rounds}", f"evaluate.every={rounds}"]
        options = [word for setting in all_settings for word in ("--set", setting)]
        command = [sys.executable, "-m", "sims.cli", "run", str(config), *options]
        with Processes(folder / "work", {"PYTHONPATH": str(ROOT)}) as processes:
            processes.start("run", [*command, "--out", str(folder / "run")])
            while processes.status("run") is None:
                if 0 < num_lines(folder / "run/rounds.jsonl") < rounds:
                    memory.append(memory_now(processes))
                time.sleep(SAMPLE_EVERY_S)
            if processes.status("run"):
                sys.exit(processes.log("run"))
        opened = RunFolder.open(folder / "run")
        seconds = [record.wall_s for record in opened.rounds()]
        summary = opened.summary()
        return Ran(median(seconds[1:]), summary.model_sha256, summary.final_accuracy, memory)


def memory_now(processes: Processes) -> int:
    """Return what is in use of the GPU, or without one of main memory by the run."""
    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        return total - free
    return memory_of(processes.left_over())["Pss"]


def on(device: str, actors: int) -> list[str]:
    """Return the settings of some actors that share the GPU, or the CPU."""
    share = 1 / actors
    return [
        f"engine.device={device}",
        f"engine.actors={actors}",
        f"engine.gpus_per_actor={share}",
        "engine.cpus_per_actor=0.25",
    ]
