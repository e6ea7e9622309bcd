"""A slot: named arrays in a file that stays mapped into memory and is written in place.

A slot is

    bytes 0..3       magic; zero while the slot is being written
    bytes 4..7       length of the header, little-endian
    bytes 8..4095    header: JSON with run id, round, versions and the table of arrays
    bytes 4096..     the arrays, each at a multiple of 64 bytes

Slots are kept mapped and written in place: 1.7 MB cost a memory copy, not an allocation, and the
operating system pages them out by itself when memory is short.
"""

import json
import mmap
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import ALIGNMENT_BYTES
from fedsbc.errors import RunError

MAGIC = b"FSB1"
HEADER_BYTES = 4096
SLACK_BYTES = 65536
"""Room to grow, so that a slightly longer payload does not mean a new file."""


def parse_header(start: bytes | mmap.mmap) -> dict[str, Any] | None:
    """Return the header of a slot from its first `HEADER_BYTES`; None if it is not whole."""
    text = _header_text(start)
    return None if text is None else json.loads(text)


def _header_text(start: bytes | mmap.mmap) -> bytes | None:
    if start[:4] != MAGIC:
        return None
    (length,) = struct.unpack("<I", start[4:8])
    return start[8 : 8 + length]


class Slot:
    """One slot file, mapped on demand and kept mapped.

    Args:
        path: the file; it need not exist yet.
        durable: flush to the disk before a write counts, for devices that may lose power.
    """

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self.path = path
        self.durable = durable
        self._map: mmap.mmap | None = None
        self._inode = -1
        self._header: tuple[bytes | None, dict[str, Any] | None] = (None, None)

    @property
    def mapped_bytes(self) -> int:
        """Bytes of the file that are mapped."""
        return 0 if self._map is None else len(self._map)

    def _mapped(self) -> mmap.mmap | None:
        """Return the current mapping; another process may have replaced the file."""
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return None
        if status.st_ino != self._inode:
            with self.path.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), 0)
            self._inode = status.st_ino
        return self._map

    def header(self) -> dict[str, Any] | None:
        """Return the header of a whole slot, or None."""
        mapped = self._mapped()
        if mapped is None:
            return None
        text = _header_text(mapped)
        if text != self._header[0]:
            self._header = text, None if text is None else json.loads(text)
        return self._header[1]

    def arrays(self, header: dict[str, Any]) -> dict[str, NDArray[Any]]:
        """Return the arrays of a slot as read-only views of the mapped file."""
        mapped = self._map
        assert mapped is not None, "the header was read from it"
        views = {}
        for name, dtype, shape, offset in header["arrays"]:
            count = int(np.prod(shape, dtype=np.int64))
            view = np.frombuffer(mapped, dtype, count, offset).reshape(shape)
            view.flags.writeable = False
            views[name] = view
        return views

    def write(self, fields: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Write a slot; it counts from the moment when its magic is in place."""
        table: list[tuple[str, str, list[int], int]] = []
        offset = HEADER_BYTES
        for name, array in arrays.items():
            table.append((name, array.dtype.str, list(array.shape), offset))
            offset += -(-array.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        header = json.dumps({**fields, "arrays": table}).encode()
        if len(header) > HEADER_BYTES - 8:
            raise RunError(f"state {self.path.name}: header of {len(header)} bytes is too long")
        mapped = self._with_room(offset)
        mapped[:4] = b"\0\0\0\0"
        for (_, dtype, _, start), array in zip(table, arrays.values(), strict=True):
            flat = np.ascontiguousarray(array).reshape(-1)
            np.frombuffer(mapped, dtype, flat.size, start)[:] = flat
        mapped[4 : 8 + len(header)] = struct.pack("<I", len(header)) + header
        if self.durable:
            mapped.flush()
        mapped[:4] = MAGIC
        if self.durable:
            mapped.flush()

    def _with_room(self, num_bytes: int) -> mmap.mmap:
        mapped = self._mapped()
        if mapped is not None and len(mapped) >= num_bytes:
            return mapped
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        with fresh.open("wb") as file:
            # Blocks are really allocated: a full disk is an error here, not a bus error later.
            os.posix_fallocate(file.fileno(), 0, num_bytes + SLACK_BYTES)
        fresh.replace(self.path)
        mapped = self._mapped()
        assert mapped is not None, "the file was just made"
        return mapped
