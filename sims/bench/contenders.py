"""Who takes part in `fedsbc bench engine`, and how each is started."""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sims
from fedsbc.errors import RunError
from sims.bench.jobs import NUM_WORKERS, Job
from sims.bench.watch import Measured, watch
from sims.deploy.processes import Processes, free_ports, wait_for_port
from sims.engine import ENVIRONMENT

OURS = {"sbc": {"name": "sbc", "density": 0.01}, "fedavg": {"name": "none"}}
"""Our contenders: upstream schemes."""

RIVALS = ("bare", "flower", "pfl")
RUNTIMES = Path(__file__).parent / "runtimes"
ROOT = Path(sims.__file__).parent.parent
RUN_TIMEOUT_S = 1800.0

APP = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "bench"
version = "1.0.0"
license = "Apache-2.0"
dependencies = ["flwr"]

[tool.flwr.app]
publisher = "fedsbc"

[tool.flwr.app.components]
serverapp = "runtimes.flower_server:app"
clientapp = "runtimes.flower_client:app"

[tool.flwr.app.config]
job = ""
"""


@dataclass(frozen=True)
class Place:
    """The scratch folder of one run.

    Attributes:
        folder: short, since Ray's sockets lie below it.
        processes: what runs there; the working directory holds nothing that could be imported.
        data: the .npz file of all runs.
    """

    folder: Path
    processes: Processes
    data: Path

    @property
    def log(self) -> Path:
        """The file that gets a line per round."""
        return self.folder / "rounds.log"

    def write_job(self, job: Job) -> Path:
        """Write the job for a rival, beside the programs and the Flower app; return its path."""
        path = self.folder / "job.json"
        path.write_text(json.dumps(job.for_rivals(self.data, self.log)))
        app = self.folder / "app"
        shutil.copytree(RUNTIMES, app / "runtimes", ignore=shutil.ignore_patterns("__pycache__"))
        (app / "pyproject.toml").write_text(APP)
        return path


@contextmanager
def place(data: Path) -> Iterator[Place]:
    """Make a scratch folder; everything that runs there ends with it."""
    folder = Path(tempfile.mkdtemp(prefix="fsb-")).resolve()
    environment = {
        **ENVIRONMENT,  # the same threads, priority and malloc for everybody
        "FLWR_HOME": str(folder / "home"),
        "RAY_TMPDIR": str(folder),
        "TMPDIR": str(folder),
        "PYTHONPATH": os.pathsep.join([str(folder / "app"), str(ROOT)]),
    }
    for name in ("work", "home"):
        (folder / name).mkdir()
    try:
        with Processes(folder / "work", environment) as processes:
            yield Place(folder, processes, data)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ours(job: Job, where: Place, upstream: dict[str, Any]) -> Measured:
    """Run the job by `fedsbc run`."""
    config = where.folder / "config.yaml"
    config.write_text(job.as_config(where.data, upstream))
    out = where.folder / "run"
    command = [sys.executable, "-m", "sims.cli", "run", str(config), "--out", str(out)]
    return _measure(job, where, command, out / "rounds.jsonl")


def bare(job: Job, where: Place) -> Measured:
    """Run the bare loop."""
    path = where.write_job(job)
    return _measure(job, where, [sys.executable, "-m", "runtimes.bare", str(path)], where.log)


def pfl(job: Job, where: Place, python: Path) -> Measured:
    """Run the job on pfl, by the Python of an environment that has it."""
    path = where.write_job(job)
    launcher = [str(python), "-m", "torch.distributed.run", "--standalone"]
    launcher += [f"--nproc-per-node={NUM_WORKERS}", "-m", "runtimes.with_pfl"]
    return _measure(job, where, [*launcher, str(path)], where.log)


def flower(job: Job, where: Place) -> Measured:
    """Run the job on Flower's own simulation runtime, its SuperLink included."""
    path, processes = where.write_job(job), where.processes
    (port,) = free_ports(1)
    (where.folder / "home" / "config.toml").write_text(
        f'[superlink]\ndefault = "bench"\n'
        f'[superlink.bench]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    )
    processes.environment["PYTHONPATH"] = ""  # the app comes in Flower's bundle
    started = time.monotonic()
    link = ["flower-superlink", "--insecure", "--simulation", "--port", str(port)]
    processes.start("superlink", link)
    wait_for_port(processes, "superlink", port, timeout_s=60)
    federation = (
        f"num-supernodes={job.clients} client-resources-num-cpus=1 init-args-num-cpus={NUM_WORKERS}"
    )
    command = ["flwr", "run", str(where.folder / "app"), "--federation-config", federation]
    command += ["--run-config", f"job='{path}'", "--stream"]
    return _measure(job, where, command, where.log, started)


def _measure(
    job: Job, where: Place, command: list[str], log: Path, started: float | None = None
) -> Measured:
    started = time.monotonic() if started is None else started
    where.processes.start("run", command)
    return watch(where.processes, "run", started, log, job.rounds, RUN_TIMEOUT_S)


def contenders(
    against: list[str], pfl_python: Path | None
) -> dict[str, Callable[[Job, Place], Measured]]:
    """Return the contenders by name: our two, and the rivals that are asked for."""
    table: dict[str, Callable[[Job, Place], Measured]] = {
        name: lambda job, where, upstream=upstream: ours(job, where, upstream)  # type: ignore[misc]
        for name, upstream in OURS.items()
    }
    if "bare" in against:
        table["bare"] = bare
    if "flower" in against:
        table["flower"] = flower
    if "pfl" in against and pfl_python is not None:
        table["pfl"] = lambda job, where: pfl(job, where, pfl_python)
    return table


def make_pfl_environment(folder: Path) -> Path:
    """Create an environment with pfl and return its Python.

    Raises:
        RunError: it cannot be made; the message is the installer's last line.
    """
    python = folder / "pfl" / "bin" / "python"
    with Processes(folder, {}) as processes:
        for command in (
            [sys.executable, "-m", "venv", str(folder / "pfl")],
            [str(python), "-m", "pip", "install", "--quiet", "pfl[pytorch]==0.6.0"],
        ):
            ended = processes.run(command, timeout_s=900)
            if ended.returncode:
                lines = ended.stderr.strip().splitlines() or ["no message"]
                raise RunError(f"pfl cannot be installed: {lines[-1]}")
    return python
