"""The scratch folder of a run: client states while it goes on, beside the run folder.

It is on the same disk as the run folder, and is removed at the end. What a killed run left behind
is removed by the next one in the same place. A lock on it keeps two processes from one run.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fedsbc.errors import ConfigError, RunError

RAY = "ray"
"""Link to Ray's own folder, which must have a short path and so lies elsewhere."""


@contextlib.contextmanager
def scratch_folder(out: Path) -> Iterator[Path]:
    """Make the scratch folder of the run in `out`, and remove it at the end.

    Raises:
        ConfigError: the folder cannot be made.
        RunError: another process is at work on this run.
    """
    root = out.parent.resolve() / f".{out.name}.scratch"
    try:
        root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(root, os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"{root}: the scratch folder cannot be made ({error})") from error
    try:
        _lock(descriptor, root, out)
        try:
            _clear(root)
            # A fresh name each time: an actor that outlives its killed driver must not write here.
            yield Path(tempfile.mkdtemp(prefix="run-", dir=root))
        finally:
            shutil.rmtree(root, ignore_errors=True)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, root: Path, out: Path) -> None:
    """Lock the folder; the lock ends with the process, however that ends."""
    is_ours = True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        is_ours = False
    except OSError:
        pass  # a file system without locks
    if not is_ours or not root.exists() or root.stat().st_ino != os.fstat(descriptor).st_ino:
        raise RunError(f"{out}: another process is at work on this run (it holds {root})")


def _clear(root: Path) -> None:
    """Remove what an earlier process left behind."""
    ray = root / RAY
    if ray.is_symlink():
        shutil.rmtree(ray.readlink(), ignore_errors=True)
        ray.unlink()
    for path in root.iterdir():
        shutil.rmtree(path, ignore_errors=True)
