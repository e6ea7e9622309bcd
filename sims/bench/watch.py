"""Watching a contender from outside, each in the same way: lines of a log, and memory."""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from fedsbc.errors import RunError
from sims.deploy.processes import Processes

POLL_S = 0.005
MEMORY_EVERY_S = 1.0
MEMORY_SHARE = 0.01
"""Share of the time that may go into reading memory: it is taken from those who are timed."""


@dataclass(frozen=True)
class Measured:
    """Figures of one run.

    Attributes:
        round_s: seconds per round, from the end of round 1 to the end of the last.
        startup_s: seconds from the start of the first process to the end of round 1, minus one
            round.
        peak_bytes: largest sum of the proportional set sizes of all processes.
        memory_bytes: that sum over time, one number per sample.
    """

    round_s: float
    startup_s: float
    peak_bytes: int
    memory_bytes: list[int]


class Memory:
    """Samples the memory of the processes that were started, now and then."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._next = 0.0
        self.samples: list[int] = []

    def sample(self) -> None:
        """Take a sample if it is time for one."""
        started = time.monotonic()
        if started < self._next:
            return
        self.samples.append(sum(proportional_bytes(pid) for pid in self._processes.left_over()))
        spent = time.monotonic() - started
        self._next = started + max(MEMORY_EVERY_S, spent / MEMORY_SHARE)


def proportional_bytes(pid: int) -> int:
    """Return a process's proportional set size: shared pages count in parts; 0 if it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def watch(
    processes: Processes, name: str, started: float, log: Path, rounds: int, timeout_s: float
) -> Measured:
    """Follow a program that was started until it has ended.

    Args:
        processes: where it runs.
        name: its name there.
        started: `time.monotonic()` before its first process was started.
        log: gets a line at the end of each round.
        rounds: how many lines there will be.
        timeout_s: for the whole run.

    Raises:
        RunError: it ended early, or did not end in time.
    """
    memory, size = Memory(processes), 0
    ends: list[float] = []
    while True:
        has_ended = processes.status(name) is not None
        if log.exists() and log.stat().st_size != size:
            size = log.stat().st_size
            num_lines = log.read_bytes().count(b"\n")
            ends += [time.monotonic()] * (num_lines - len(ends))
        if has_ended:
            break
        if time.monotonic() - started > timeout_s:
            raise RunError(f"{name}: did not end within {timeout_s:g} s")
        memory.sample()
        time.sleep(POLL_S)
    if processes.status(name) or len(ends) < rounds:
        lines = processes.log(name).strip().splitlines() or ["it printed nothing"]
        raise RunError(f"{name}: {len(ends)} of {rounds} rounds: {lines[-1].strip()}")
    round_s = (ends[-1] - ends[0]) / (rounds - 1)
    return Measured(round_s, ends[0] - started - round_s, max(memory.samples), memory.samples)
