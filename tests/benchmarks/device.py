"""A device with the base install: what is installed, and the memory that it takes.

    python3 -m venv device && device/bin/pip install -c constraints.txt .
    python -m tests.benchmarks.device device

Runs `configs/demo/sbc.yaml` (lenet5-caffe) on a SuperLink and two SuperNodes of this machine, the
second one from that environment, without anything else on its path. Prints one JSON object.
"""

import argparse
import json
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from fedsbc import config as configs
from fedsbc.run_folder import RunFolder
from sims.deploy.app_folder import write_app
from sims.deploy.data import write_device_files
from sims.deploy.deployment import Deployment
from sims.deploy.local import node_config

ROOT = Path(__file__).parents[2]
SAMPLE_S = 0.02
NOT_NEEDED = ("ray", "pandas", "pyarrow", "plotly", "matplotlib", "torchvision", "flwr_datasets")


def config_of(*overrides):
    return configs.load(
        ROOT / "configs" / "demo" / "sbc.yaml",
        ["clients.count=2", "participation=1", "rounds=2", "engine.kind=deploy", *overrides],
    )


def installed(venv):
    """Return the size of an environment in MB and its largest packages."""
    (packages,) = (venv / "lib").glob("python*/site-packages")
    sizes = {path.name: _size(path) for path in packages.iterdir()}
    largest = sorted(sizes, key=sizes.get, reverse=True)[:6]
    return {
        "total_mb": round(_size(venv) / 1e6),
        "largest_mb": {name: round(sizes[name] / 1e6) for name in largest},
        "not_needed": [name for name in NOT_NEEDED if name in sizes],
    }


def _size(path):
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(f.lstat().st_size for f in files if f.is_file() and not f.is_symlink())


class Peaks:
    """Samples the peak memory of programs of an environment, by their names."""

    def __init__(self, venv):
        self.kib, self._venv, self._stop = {}, venv, threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _sample(self):
        while not self._stop.wait(SAMPLE_S):
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    if str(self._venv).encode() in words[0]:
                        self._note(Path(words[1].decode()).name, (entry / "status").read_text())
                except (OSError, IndexError, UnicodeDecodeError):
                    continue

    def _note(self, name, status):
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                self.kib[name] = max(self.kib.get(name, 0), int(line.split()[1]))


def deploy(venv, config, folder):
    """Run a deployment whose second node is of an environment; return its folder and peaks."""
    with Deployment(folder / "deployment", {"PYTHONPATH": str(ROOT)}) as deployment:
        deployment.start_superlink()
        for number, file in enumerate(write_device_files(config, folder / "data")):
            node = deployment.add_node(f"node-{number}", node_config(number, file))
            clean = ["env", "-u", "PYTHONPATH", f"PATH={venv / 'bin'}:/usr/bin:/bin"]
            deployment.start_node(node.name, within=clean if number == 1 else ())
        write_app(folder / "app", config, folder / "run")
        with Peaks(venv) as peaks:
            started = time.monotonic()
            status, details = deployment.wait(deployment.submit(folder / "app"), 600)
            seconds = time.monotonic() - started
    assert status == "finished:completed", details
    return (
        RunFolder.open(folder / "run"),
        {k: round(v / 1024) for k, v in peaks.kib.items()},
        seconds,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("venv", type=Path)
    venv = parser.parse_args().venv.resolve()
    version = subprocess.run(
        [venv / "bin" / "python", "-c", "import torch; print(torch.__version__)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="fedsbc-device-") as folder:
        run, peaks, seconds = deploy(venv, config_of(), Path(folder))
        result = {
            "installed": installed(venv),
            "torch": version.stdout.strip(),
            "peak_mib": peaks,
            "model_sha256": run.summary().model_sha256,
            "participants": [record.participants for record in run.rounds()],
            "seconds": round(seconds, 1),
        }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
