"""The frame of a payload: header, table, and the sections that follow in one fixed order."""

import zlib
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedsbc.coding import rice
from fedsbc.coding.runs import num_bytes, steps
from fedsbc.errors import WireError
from fedsbc.layout import Layout
from fedsbc.lazy import lazy
from fedsbc.payload import rows
from fedsbc.payload.kinds import BY_CODE
from fedsbc.payload.table import Table

Buffer: TypeAlias = bytes | memoryview
"""Contiguous memory that is copied into a payload as it is."""

MAGIC = b"FS"
VERSION = 1
HEADER_BYTES = 16
SHARED_FLAG = 0x80
SEED_BYTES = 8

SECTIONS = ("seed", "scalars", "floats", "halves", "flags", "bitmaps", "remainders", "unary")
"""In the order in which they travel."""


@dataclass(frozen=True)
class Header:
    """What the first 16 bytes say.

    Attributes:
        layout_hash: of the tensors that the payload is for, 16 hex digits.
        kind: code of the kind of all blocks, 0 if each row of the table says its own.
        shared: the scalars of all blocks are the same and travel once.
    """

    layout_hash: str
    kind: int
    shared: bool


@dataclass(frozen=True)
class Frame:
    """A payload cut into its pieces; the contents of the sections are not yet looked at.

    Attributes:
        table: one row per block.
        shared: the scalars of all blocks are the same and travel once.
        sections: the bytes of each of `SECTIONS`.
        num_bytes: of the whole payload.
    """

    table: Table
    shared: bool
    sections: dict[str, memoryview]
    num_bytes: int

    @lazy
    def stops(self) -> NDArray[np.int64]:
        """Where the numbers of the unary code end.

        Raises:
            WireError: it does not hold the announced numbers.
        """
        table = self.table
        return rice.find_stops(self.sections["unary"], table.runs.total, table.max_unary_bits)

    @lazy
    def quotients(self) -> NDArray[np.int64]:
        """The unary parts as numbers.

        Raises:
            WireError: as `stops`.
        """
        return steps(self.stops)


def max_payload_bytes(layout: Layout) -> int:
    """Return a bound on the bytes of any payload for that layout; longer ones are refused unread.

    An entry takes at most 9 bytes (a float32 and a badly chosen position code), a row 8, and the
    paddings of all sections 64.
    """
    return HEADER_BYTES + SEED_BYTES + 64 + 8 * len(layout.tensors) + 9 * layout.size


def section_bytes(table: Table, shared: bool) -> dict[str, int]:
    """Return the bytes of every section but the last, which is the rest."""
    num_scalars, shares = table.num_scalars, table.form.shares
    return {
        "seed": SEED_BYTES * table.form.has_seed,
        "scalars": 4 * int(num_scalars.max(initial=0) if shared else num_scalars.sum()),
        "floats": 4 * int(table.num_floats.sum()) if "floats" in shares else 0,
        "halves": 2 * int(table.num_halves.sum()) if "halves" in shares else 0,
        "flags": num_bytes(int(table.num_signs.sum())) if "negative" in shares else 0,
        "bitmaps": num_bytes(int(table.bitmap_bits.sum())),
        "remainders": table.runs.remainder_bytes,
    }


def is_shared(scalars: NDArray[np.float32], table: Table) -> bool:
    """Whether two or more blocks have scalars and all have the same ones, bit for bit."""
    if not table.may_share:
        return False
    num_blocks = np.count_nonzero(table.num_scalars)
    rows = np.ascontiguousarray(scalars, "<f4").view(np.uint32).reshape(num_blocks, -1)
    return bool((rows == rows[0]).all())


def pack(layout: Layout, table: Table, shared: bool, sections: dict[str, Buffer]) -> bytes:
    """Return the payload, copied together once."""
    contents: list[Buffer] = [sections[name] for name in SECTIONS]
    expected = section_bytes(table, shared).values()
    sizes = [memoryview(part).nbytes for part in contents]
    assert sizes[:-1] == list(expected), "sections fit"
    kind = table.form.uniform_kind | SHARED_FLAG * shared
    head = MAGIC + bytes([VERSION, kind]) + bytes.fromhex(layout.hash)
    body: list[Buffer] = [rows.to_bytes(table), *contents]
    return b"".join([head, _checksum(head, *body), *body])


def unpack(data: bytes | memoryview, layout: Layout) -> Frame:
    """Cut a payload into its pieces.

    Raises:
        WireError: not a payload of this version and layout, damaged, or of the wrong length.
    """
    view = memoryview(data).cast("B")
    if len(view) > max_payload_bytes(layout):
        raise WireError(f"a payload of {len(view)} bytes is longer than this model can need")
    header = read_header(view)
    if header.layout_hash != layout.hash:
        raise WireError(f"payload for layout {header.layout_hash}; this model's is {layout.hash}")
    table, rest = rows.parse(view[HEADER_BYTES:], header.kind, layout.sizes)
    if header.shared and not table.may_share:
        raise WireError("there are no scalars that the blocks could share")
    sections = {}
    for name, size in section_bytes(table, header.shared).items():
        if size > len(rest):
            raise WireError(f"section '{name}' needs {size} bytes where {len(rest)} are left")
        sections[name], rest = rest[:size], rest[size:]
    sections["unary"] = rest
    return Frame(table, header.shared, sections, len(view))


def read_header(data: bytes | memoryview) -> Header:
    """Return the header of a payload whose checksum is right.

    Raises:
        WireError: not a payload, of another version, or damaged.
    """
    view = memoryview(data).cast("B")
    if len(view) < HEADER_BYTES:
        raise WireError(f"a payload of {len(view)} bytes is shorter than its header")
    if bytes(view[:2]) != MAGIC:
        raise WireError("not a fedsbc payload: it does not start with 'FS'")
    if view[2] != VERSION:
        raise WireError(f"payload of version {view[2]}; this program reads version {VERSION}")
    if bytes(view[12:16]) != _checksum(view[:12], view[HEADER_BYTES:]):
        raise WireError("the payload is damaged: its checksum does not match")
    kind = view[3] & ~SHARED_FLAG
    if kind and kind not in BY_CODE:
        raise WireError(f"blocks of kind {kind} are not known to this version")
    return Header(bytes(view[4:12]).hex(), kind, bool(view[3] & SHARED_FLAG))


def _checksum(*parts: Buffer) -> bytes:
    """Return the CRC-32 of all parts: damage of up to 32 bits in a row is always found."""
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return checksum.to_bytes(4, "little")
