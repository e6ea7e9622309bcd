"""Runs of the command line as processes of their own, which tests stop and kill."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

ROOT = Path(__file__).parent.parent
MARK = "FEDSBC_TEST_MARK"
WAIT_S = 240


class Command:
    """One `fedsbc` command in a session of its own; its children are found by their environment.

    Args:
        arguments: of the command line.
        environment: further variables.
    """

    def __init__(self, *arguments: object, **environment: str) -> None:
        self.mark = uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sims.cli", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "FLWR_TELEMETRY_ENABLED": "0", MARK: self.mark, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def pids(self) -> list[int]:
        """Return the living processes of the command: itself, Ray's, the actors."""
        return pids_of(MARK, self.mark)

    def kill_all(self) -> None:
        """Kill -9 the driver and all that it started, at once."""
        for pid in [self.process.pid, *self.pids()]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.communicate(timeout=WAIT_S)
        wait_until(lambda: not self.pids())

    def end(self) -> tuple[int, str]:
        """Wait for the end and return the exit status and what was said on standard error."""
        _, said = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, said


def pids_of(variable: str, value: str) -> list[int]:
    """Return the living processes that were started with a variable in their environment."""
    wanted = f"{variable}={value}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue  # it has just ended, or is not ours
    return found


def wait_until(is_so: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
    """Wait until something is so, and fail if it does not come."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.005)
