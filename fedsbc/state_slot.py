"""A slot: named arrays in a file with a header, where a write that was cut off is seen.

A slot is

    bytes 0..3       magic; zero while the slot is being written
    bytes 4..7       length of the header, little-endian
    bytes 8..4095    header: JSON with the caller's fields and the table of arrays
    bytes 4096..     the arrays, each at a multiple of 64 bytes

It is read through a mapping that is kept, and written in place by system calls. Both work on the
operating system's one copy of the file, so a reader sees what was written without mapping again.
To store through a mapping would cost a page fault for each 4 KiB wherever the mapping is fresh, or
the disk has caught up with the file since: 20 times the copy itself.
"""

import json
import math
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

MOST_PARTS = os.sysconf("SC_IOV_MAX")

Header = dict[str, Any]
Part = bytes | memoryview
Row = tuple[str, str, tuple[int, ...], int]
"""Of the table of arrays: name, dtype, shape, offset in bytes."""


def parse_header(start: bytes | mmap.mmap) -> Header | None:
    """Return the header of a slot from its first `HEADER_BYTES`; None if it is not whole."""
    text = _header_text(start)
    return None if text is None else json.loads(text)


def _header_text(start: bytes | mmap.mmap) -> bytes | None:
    if start[:4] != MAGIC:
        return None
    (length,) = struct.unpack("<I", start[4:8])
    return start[8 : 8 + length]


class Slot:
    """One slot file, mapped at the first look and kept mapped.

    Args:
        path: the file; it need not exist yet.
        durable: flush to the disk before a write counts, for devices that may lose power.
    """

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self.path = path
        self.durable = durable
        self._name = os.fspath(path)  # once: it is asked for in every round
        self._map: mmap.mmap | None = None
        self._inode = -1
        self._text: bytes | None = None
        self._header: Header | None = None

    @property
    def mapped_bytes(self) -> int:
        """Length of the mapping that this object holds."""
        return 0 if self._map is None else len(self._map)

    def header(self) -> Header | None:
        """Look at the file and return its header, or None where there is no whole slot.

        Another process may have written it since; the same object comes back as long as nobody
        has.
        """
        mapped = self._look()
        if mapped is None:
            return None
        text = _header_text(mapped)
        if text != self._text:
            self._text, self._header = text, None if text is None else json.loads(text)
        return self._header

    def _look(self) -> mmap.mmap | None:
        """Return the mapping of the file that is there now; it may be another than before."""
        try:
            if os.stat(self._name).st_ino != self._inode:
                self._map_again()
        except FileNotFoundError:
            return None
        return self._map

    def _map_again(self) -> None:
        # The old mapping lives on while arrays of it do, and keeps its inode from a second use.
        descriptor = os.open(self._name, os.O_RDONLY)
        try:
            self._map = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
            self._inode = os.fstat(descriptor).st_ino
        finally:
            os.close(descriptor)
        self._text = self._header = None

    def arrays(self, header: Header) -> dict[str, NDArray[Any]]:
        """Return the arrays of the header that the last look gave, as read-only views."""
        assert self._map is not None, "a header was read from it"
        return {
            name: np.frombuffer(self._map, dtype, math.prod(shape), offset).reshape(shape)
            for name, dtype, shape, offset in header["arrays"]
        }

    def write(self, fields: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Write a slot; it counts from the moment when its magic is in place.

        Raises:
            RunError: the header is too long.
            OSError: the disk is full or fails.
        """
        parts, num_bytes = self._parts(fields, arrays)
        file = self._opened(num_bytes)
        try:
            # In this order: the magic is zero before the first array changes.
            _write(file, parts, 0)
            self._flush(file)
            _write(file, [MAGIC], 0)
            self._flush(file)
        finally:
            os.close(file)

    def _parts(
        self, fields: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> tuple[list[Part], int]:
        """Return the content of the file, its magic zero, in parts; and its length in bytes."""
        table: list[Row] = []
        parts: list[Part] = [b""]  # the header, once the table is known
        offset = HEADER_BYTES
        for name, array in arrays.items():
            table.append((name, array.dtype.str, array.shape, offset))
            padding = -array.nbytes % ALIGNMENT_BYTES
            parts += [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, bytes(padding)]
            offset += array.nbytes + padding
        header = json.dumps({**fields, "arrays": table}).encode()
        if len(header) > HEADER_BYTES - 8:
            raise RunError(f"state {self.path.name}: header of {len(header)} bytes is too long")
        parts[0] = struct.pack("<4xI", len(header)) + header.ljust(HEADER_BYTES - 8, b"\0")
        return parts, offset

    def _flush(self, file: int) -> None:
        if self.durable:
            os.fdatasync(file)

    def _opened(self, num_bytes: int) -> int:
        """Return a descriptor of the file, which is made anew if it is too short."""
        try:
            file = os.open(self._name, os.O_WRONLY)
        except FileNotFoundError:
            return self._made(num_bytes)
        if os.fstat(file).st_size >= num_bytes:
            return file
        os.close(file)
        return self._made(num_bytes)

    def _made(self, num_bytes: int) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            # Blocks are really allocated: a full disk is an error before a slot is spoilt.
            os.posix_fallocate(file, 0, num_bytes + SLACK_BYTES)
            fresh.replace(self.path)
        except OSError:
            os.close(file)
            raise
        return file


def _write(file: int, parts: list[Part], offset: int) -> None:
    """Write all parts one after the other; a system call takes 1024 of them, and 2 GB, at most."""
    while parts:
        written = os.pwritev(file, parts[:MOST_PARTS], offset)
        offset += written
        while parts and written >= len(parts[0]):
            written -= len(parts.pop(0))
        if written:
            parts[0] = parts[0][written:]
