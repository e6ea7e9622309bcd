"""Programs that are started together and stopped together, with all that they started themselves.

Each program runs in a session of its own. Flower and Ray start further processes, some of them in
sessions of their own again; all inherit an environment variable with a value that nobody else has,
and by it the last of them is found. On systems without /proc only the sessions are stopped.
"""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from fedsbc.errors import RunError

MARK = "FEDSBC_STARTED_BY"
STOP_WITHIN_S = 10.0
"""Time that a program gets to end by itself before it is killed."""

ENVIRONMENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "OMP_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
}
"""For Flower's programs: nothing is fetched, nothing is reported, one thread per client."""


class Processes:
    """Starts programs and stops them; also a context manager.

    Args:
        folder: working directory of the programs, with their output in `<name>.log`. It must hold
            nothing that Python could import.
        environment: added to this process's own.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._mark = secrets.token_hex(8)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self.environment = {**os.environ, **ENVIRONMENT, **environment, "PATH": path}
        self.environment[MARK] = self._mark
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def start(self, name: str, command: Sequence[str]) -> int:
        """Start a program in the background and return its process id.

        Args:
            name: unique among those that run; its output is appended to `<name>.log`.
            command: program and arguments.
        """
        assert name not in self._running, "a name belongs to one running program"
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running[name] = process
        return process.pid

    def run(self, command: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Run a program to its end and return its status and output.

        Raises:
            RunError: it did not end in time.
        """
        try:
            return subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired as error:
            words = " ".join(command[:2])
            raise RunError(f"{words}: did not end within {timeout_s:g} s") from error

    def log(self, name: str) -> str:
        """Return what a program has printed so far."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def last_line(self, name: str) -> str:
        """Return the last line that a program has printed."""
        lines = self.log(name).strip().splitlines() or ["it printed nothing"]
        return lines[-1].strip()

    def is_running(self, name: str) -> bool:
        """Whether a program that was started, and not stopped, still runs."""
        return self._running[name].poll() is None

    def status(self, name: str) -> int | None:
        """Return the exit status of a program that was started, None while it runs."""
        return self._running[name].poll()

    def check(self, name: str) -> None:
        """Raise if a program has ended.

        Raises:
            RunError: with the last line that it printed.
        """
        status = self._running[name].poll()
        if status is not None:
            raise RunError(f"{name} ended with status {status}: {self.last_line(name)}")

    def stop(self, name: str) -> None:
        """Ask one program to end, and kill what is left of its session after a while."""
        process = self._running.pop(name)
        _signal(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_WITHIN_S)
        _signal(process.pid, signal.SIGKILL)
        process.wait()

    def kill(self, name: str) -> None:
        """End one program and its session at once, as a loss of power would."""
        process = self._running.pop(name)
        _signal(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """Stop everything that was started, and what that has started."""
        for process in self._running.values():
            _signal(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_WITHIN_S
        for process in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        for name in list(self._running):
            self.kill(name)
        self._kill_left_over()

    def _kill_left_over(self) -> None:
        """Kill until none is there: one may start another meanwhile, and none goes at once."""
        deadline = time.monotonic() + STOP_WITHIN_S
        while (pids := self.left_over()) and time.monotonic() < deadline:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def left_over(self) -> list[int]:
        """Return the ids of living processes that carry this object's mark."""
        mark = f"{MARK}={self._mark}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found


def _signal(pid: int, number: int) -> None:
    """Send a signal to the session that a process leads; it may be gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def free_ports(count: int) -> list[int]:
    """Return TCP ports of 127.0.0.1 that nobody listens on just now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def wait_for_port(processes: Processes, name: str, port: int, timeout_s: float) -> None:
    """Wait until a program that was started accepts connections.

    Raises:
        RunError: it has ended, or the time is up.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        processes.check(name)
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        if time.monotonic() > deadline:
            raise RunError(f"{name} does not listen on port {port} after {timeout_s:g} s")
        time.sleep(0.1)
