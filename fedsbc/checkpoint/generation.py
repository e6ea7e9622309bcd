"""Generations on the disk: which there are, and whether they are whole."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

MANIFEST = "manifest.json"
FORMAT = "fedsbc.checkpoint.v1"
NUM_THREADS = 4
"""Hashing and flushing wait for the disk and for OpenSSL, not for Python."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Generation:
    """One checkpoint on the disk.

    Attributes:
        path: its folder.
        round: the last round that is in it.
    """

    path: Path
    round: int

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest: `run_id`, `round` and `files`; None if it cannot be read."""
        try:
            manifest = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        is_ours = isinstance(manifest, dict) and manifest.get("format") == FORMAT
        return manifest if is_ours and isinstance(manifest.get("files"), dict) else None

    def files(self, run_id: str) -> dict[str, dict[str, Any]]:
        """Return the manifest's files of a run by name, empty where they are of another."""
        manifest = self.manifest()
        return manifest["files"] if manifest and manifest.get("run_id") == run_id else {}

    def damage(self) -> str | None:
        """Return what is wrong with the first file that is not as it was written, or None."""
        manifest = self.manifest()
        if manifest is None:
            return f"{self.path / MANIFEST}: cannot be read"
        found = in_threads(self._damage_of, sorted(manifest["files"].items()))
        return next((damage for damage in found if damage), None)

    def _damage_of(self, item: tuple[str, dict[str, Any]]) -> str | None:
        name, expected = item
        path = self.path / name
        try:
            size = path.stat().st_size
            if size != expected["bytes"]:
                return f"{path}: {size} bytes long, expected {expected['bytes']}"
            if sha256(path) != expected["sha256"]:
                return f"{path}: its content has changed (sha256)"
        except OSError as error:
            return f"{path}: cannot be read ({error.strerror})"
        return None


def generations(folder: Path) -> list[Generation]:
    """Return the generations of a `checkpoint/` folder, newest first; it need not exist."""
    found = [
        Generation(path, int(path.name.partition("-")[2]))
        for path in folder.glob("round-[0-9]*")
        if path.name.partition("-")[2].isdigit()
    ]
    return sorted(found, key=lambda generation: -generation.round)


def discard(unwanted: Iterable[Generation]) -> None:
    """Remove generations; a kill does not leave half of one under the name of a whole one."""
    for generation in list(unwanted):
        hidden = generation.path.with_name(f".{generation.path.name}.old")
        generation.path.rename(hidden)
        shutil.rmtree(hidden)


def sha256(path: Path) -> str:
    """Return the sha256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def in_threads(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return a function's results in the order of the items; the first error ends it."""
    pool = ThreadPoolExecutor(NUM_THREADS)
    try:
        return list(pool.map(function, items))
    finally:
        pool.shutdown(cancel_futures=True)
