"""Where a run was made: versions and machine, never environment variables or host names."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("fedsbc", "torch", "numpy", "flwr", "ray", "flwr-datasets", "pyarrow")
"""Distributions whose versions a run records."""


def describe() -> dict[str, Any]:
    """Return versions and machine as an object for JSON; what cannot be known is None."""
    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "system": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory_bytes(),
        "gpus": _gpus(),
        "git": _git(Path(__file__).resolve().parent),
    }


def _version(name: str) -> str | None:
    """Return the version of an installed distribution."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str | None:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine() or None


def _memory_bytes() -> int | None:
    """Return the main memory of the machine in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def _gpus() -> list[str]:
    """Return the names of the CUDA devices, if torch is loaded already and sees any."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return []
    return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]


def _git(folder: Path) -> dict[str, Any] | None:
    """Return commit and state of the checkout that the package lies in; None outside of one."""
    tracked = _run_git(folder, "ls-files", "--error-unmatch", "__init__.py")
    commit = _run_git(folder, "rev-parse", "HEAD")
    if tracked is None or commit is None:  # an installed package within a stranger's checkout
        return None
    changes = _run_git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "changed": bool(changes)}


def _run_git(folder: Path, *arguments: str) -> str | None:
    """Return what a git command prints, or None where it fails or git is missing."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
