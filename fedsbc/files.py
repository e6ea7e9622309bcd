"""Writing files so that a reader, or a kill at any moment, never sees half of one."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; what was written there takes its place at the end.

    The old file stays as it was until the new one is complete on the disk, and for good if the
    body raises.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8, line feeds) in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays of any shape and dtype as safetensors.

    Raises:
        OSError: the file cannot be written.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    path.touch()
    mode = path.stat().st_mode  # of any other file; safetensors makes one that others cannot read
    try:
        save_file(dict(arrays), path)
        path.chmod(mode)
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from error
