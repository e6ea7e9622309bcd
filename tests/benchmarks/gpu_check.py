"""What a GPU must be able to do, in under five minutes; without one, the same on the CPU, smaller.

    python -m tests.benchmarks.gpu_check [--out docs/results/gpu.md]

Runs whole experiments with four actors of a quarter of the GPU and with one actor of all of it,
watches memory over 30 rounds, compares accuracy with the CPU's, and the compression on the device
with a copy there and with the CPU's bytes. Ends with status 1 if a check fails. The file is written
only on a GPU, unless it is named.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import numpy as np
import torch

from fedsbc import compressors, environment, payload
from fedsbc.feedback import compress_with_feedback
from fedsbc.layout import Layout
from fedsbc.selection_torch import compress_on_device
from sims.bench.jobs import jobs, write_data
from tests.benchmarks.gpu_runs import on, run
from tests.processes import ROOT

PAGE = ROOT / "docs/results/gpu.md"
FLAT = 1.05
"""Memory of the last third of the rounds against the third before it."""

NOISE = 0.03
"""Accuracy that two kinds of device may differ by after a short run."""


@dataclass(frozen=True)
class Size:
    """How much is done: all of it on a GPU, a little on a CPU.

    Attributes:
        clients: of the jobs A1 and A3.
        rounds: of A1, over which memory is watched.
        quick_rounds: of A3.
        curve_rounds: of the comparison of accuracies.
        entries: of the change that is compressed.
    """

    clients: int
    rounds: int
    quick_rounds: int
    curve_rounds: int
    entries: int


ON_GPU = Size(clients=400, rounds=30, quick_rounds=60, curve_rounds=30, entries=25_600_000)
ON_CPU = Size(clients=40, rounds=9, quick_rounds=5, curve_rounds=2, entries=1_000_000)


@dataclass(frozen=True)
class Check:
    """One line of the result."""

    what: str
    found: str
    passed: bool


def whole_jobs(size: Size, device: str) -> Iterator[Check]:
    """A1 and A3 with four actors and with one: time, memory, the same bytes."""
    known = jobs(size.clients, None)
    with tempfile.TemporaryDirectory(prefix="fsb-") as name:
        data = Path(name) / "data.npz"
        write_data(data)
        for job, rounds in (("A1", size.rounds), ("A3", size.quick_rounds)):
            config = Path(name) / "config.yaml"
            config.write_text(known[job].as_config(data, {"name": "sbc", "density": 0.01}))
            many, one = (run(config, rounds, *on(device, actors)) for actors in (4, 1))
            yield Check(
                f"{job}, {known[job].cohort} of {size.clients} clients, 4 actors and 1",
                f"{many.round_s:.3f} and {one.round_s:.3f} s a round",
                True,
            )
            yield Check(
                f"{job}: the same model_sha256 with 4 actors and with 1",
                f"{many.model_sha256[:16]}, {one.model_sha256[:16]}",
                many.model_sha256 == one.model_sha256,
            )
            if job == "A1":
                yield flat(many.memory, rounds)


def flat(memory: list[int], rounds: int) -> Check:
    """Compare the memory of the last third with the third before."""
    third = max(1, len(memory) // 3)
    before, last = mean(memory[third : 2 * third] or memory), mean(memory[-third:])
    return Check(
        f"memory over {rounds} rounds: the last third against the second",
        f"{last / 2**30:.2f} against {before / 2**30:.2f} GiB ({last / before:.3f})",
        last <= FLAT * before,
    )


def curve(size: Size, device: str) -> Iterator[Check]:
    """The demo's SBC on the device and on the CPU."""
    config, rounds = ROOT / "configs/demo/sbc.yaml", size.curve_rounds
    there, here = run(config, rounds, *on(device, 4)), run(config, rounds, *on("cpu", 2))
    yield Check(
        f"accuracy after {size.curve_rounds} rounds on {device} and on the CPU",
        f"{there.accuracy:.1%} and {here.accuracy:.1%}",
        abs(there.accuracy - here.accuracy) <= NOISE,
    )


def timed_ms(step: Callable[[], object], device: str, repeats: int = 20) -> float:
    """Return the median time of a step, its work on the device included."""
    times = []
    for _ in range(repeats):
        wait(device)
        started = time.perf_counter()
        step()
        wait(device)
        times.append(1000 * (time.perf_counter() - started))
    return median(times[1:])


def wait(device: str) -> None:
    """Wait until the device has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def sbc_step(size: Size, device: str) -> Iterator[Check]:
    """One compression on the device against a copy there, and against the CPU's result."""
    layout = Layout.of([("weight", (size.entries,))])
    draw = np.random.default_rng(0)
    delta, residual = (draw.standard_normal(size.entries).astype(np.float32) for _ in "12")
    compressor = compressors.make(compressors.options_for("sbc")(density=0.01))
    there = [torch.from_numpy(vector).to(device) for vector in (delta, residual)]
    target = torch.empty_like(there[0])
    copy_ms = timed_ms(lambda: target.copy_(there[0]), device)
    step_ms = timed_ms(lambda: compress_on_device(compressor, *there, layout), device)
    yield Check(
        f"SBC step at {size.entries / 1e6:.1f} M entries against a copy on the device",
        f"{step_ms:.2f} against {copy_ms:.3f} ms ({step_ms / copy_ms:.1f} copies)",
        True,
    )
    update, left = compress_on_device(compressor, *there, layout)
    expected = compress_with_feedback(compressor, delta, residual, layout, {}, draw)
    same_bytes = payload.encode(update) == payload.encode(expected.update)
    same_residual = left.cpu().numpy().tobytes() == expected.residual.tobytes()
    yield Check(
        "positions, means and residual equal the CPU's",
        "bit for bit" if same_bytes and same_residual else "they differ",
        same_bytes and same_residual,
    )


def page(checks: list[Check], device: str, seconds: float) -> str:
    """Return the results as a page."""
    about = environment.describe()
    where = ", ".join(about["gpus"]) if device == "cuda" else f"no GPU; {about['cpu']}"
    lines = [
        "# On a GPU",
        "",
        f"`make gpu-check` on {where}, torch {about['packages']['torch']}, in {seconds:.0f} s.",
        "",
        "| check | found | |",
        "|---|---|---|",
        *(f"| {c.what} | {c.found} | {'passed' if c.passed else 'FAILED'} |" for c in checks),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Check, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the page; default on a GPU: docs/results/gpu.md")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size, started, checks = ON_GPU if device == "cuda" else ON_CPU, time.monotonic(), []
    print(f"on {device}" + ("" if device == "cuda" else ": no GPU here, so the small form"))
    for part in (sbc_step, whole_jobs, curve):
        for check in part(size, device):
            checks.append(check)
            verdict = "passed" if check.passed else "FAILED"
            print(f"{verdict}  {check.what}: {check.found}", flush=True)
    out = given.out or (PAGE if device == "cuda" else None)
    if out is not None:
        out.write_text(page(checks, device, time.monotonic() - started))
    sys.exit(not all(check.passed for check in checks))


if __name__ == "__main__":
    main()
