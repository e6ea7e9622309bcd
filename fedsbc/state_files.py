"""Client states as memory-mapped files: the home on actors and on devices.

Two slot files per client are written in turn, so that the state that a round started from stays
whole until a later round has begun: a repeated request finds it again, and a process that dies
in the middle of a write has spoilt only the slot that nobody needs. A slot is

    bytes 0..3       magic; zero while the slot is being written
    bytes 4..7       length of the header, little-endian
    bytes 8..4095    header: JSON with run id, round, versions and the table of arrays
    bytes 4096..     the arrays, each at a multiple of 64 bytes

Slots are kept mapped and written in place: 1.7 MB cost a memory copy, not an allocation, and the
operating system pages them out by itself when memory is short.
"""

import functools
import json
import mmap
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import ALIGNMENT_BYTES, Vector
from fedsbc.errors import RunError
from fedsbc.state import ClientState, newest_slot, slot_to_write

MAGIC = b"FSB1"
HEADER_BYTES = 4096
FIELDS = ("run_id", "round", "base_version")
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
        mapped = self._mapped()
        assert mapped is not None, "a header was read from it"
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


class FileHome:
    """The state of one client of one run, in two slot files of a folder.

    Args:
        folder: where the files lie.
        run_id: states of another run are never returned.
        client_id: the client.
        durable: survive the loss of power, not only of the process.
    """

    def __init__(self, folder: Path, run_id: str, client_id: int, *, durable: bool = False) -> None:
        self.folder = folder
        self.run_id = run_id
        self._slots = [
            Slot(folder / f"client-{client_id:05d}.{letter}", durable=durable) for letter in "ab"
        ]

    def _headers(self) -> list[dict[str, Any] | None]:
        headers = [slot.header() for slot in self._slots]
        return [
            header if header and header["run_id"] == self.run_id else None for header in headers
        ]

    def load(self, before_round: int) -> ClientState | None:
        """Return the newest state written before that round; its arrays are read-only views."""
        headers = self._headers()
        index = newest_slot(_rounds(headers), before_round)
        header = None if index is None else headers[index]
        if index is None or header is None:
            return None
        return ClientState(
            **{name: header[name] for name in FIELDS}, arrays=self._slots[index].arrays(header)
        )

    def save(self, state: ClientState) -> None:
        """Store the state in the slot that its round did not start from."""
        assert state.run_id == self.run_id, "a home belongs to one run"
        index = slot_to_write(_rounds(self._headers()), state.round)
        self._slots[index].write({name: getattr(state, name) for name in FIELDS}, state.arrays)

    def base_weights(self, version: int) -> tuple[Vector, Vector] | None:
        """Return the shared (weights, buffers) of that version, read-only, or None."""
        return shared_weights(self.folder).read(version)


def _rounds(headers: list[dict[str, Any] | None]) -> list[int | None]:
    return [header["round"] if header else None for header in headers]


class SharedWeights:
    """The server's current weights, once per machine, for every actor to map.

    Two files are written in turn, so that a version stays readable while the next is written.
    """

    def __init__(self, folder: Path) -> None:
        self._slots = [Slot(folder / f"weights.{letter}") for letter in "ab"]

    def publish(self, version: int, weights: Vector, buffers: Vector) -> None:
        """Store the weights of a version, shape (d,), and the float buffers."""
        fields = {"version": version}
        self._slots[version % 2].write(fields, {"weights": weights, "buffers": buffers})

    def read(self, version: int) -> tuple[Vector, Vector] | None:
        """Return read-only views of the weights and buffers of a version, or None."""
        slot = self._slots[version % 2]
        header = slot.header()
        if header is None or header["version"] != version:
            return None
        arrays = slot.arrays(header)
        return arrays["weights"], arrays["buffers"]


@functools.cache
def shared_weights(folder: Path) -> SharedWeights:
    """Return this process's view of a folder's shared weights, mapped once."""
    return SharedWeights(folder)
