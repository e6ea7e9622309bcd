"""Bytes to update: strict, and bounded by the layout before anything is allocated."""

from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsbc.blocks import MAX_LEVEL, Block, Flags, Positions
from fedsbc.coding import positions, rice
from fedsbc.coding.positions import Coding
from fedsbc.coding.runs import Symbols, unpack_flags
from fedsbc.errors import WireError
from fedsbc.layout import Layout
from fedsbc.payload.accounting import PayloadBits, bits_of
from fedsbc.payload.form import Counts
from fedsbc.payload.frame import Frame, is_shared, unpack
from fedsbc.payload.kinds import BY_CODE
from fedsbc.payload.parts import NOTHING, Parts
from fedsbc.payload.table import Table
from fedsbc.updates import Update


def decode(data: bytes | memoryview, layout: Layout) -> Update:
    """Return the update that was encoded.

    Args:
        data: a payload from anywhere.
        layout: the tensors of the receiver's model.

    Raises:
        WireError: anything that `encode` would not make for that layout.
    """
    return _update(unpack(data, layout), layout)


def decode_and_measure(data: bytes | memoryview, layout: Layout) -> tuple[Update, PayloadBits]:
    """Return what `decode` and `measure` return, in one reading.

    Raises:
        WireError: anything that `encode` would not make for that layout.
    """
    frame = unpack(data, layout)
    return _update(frame, layout), bits_of(frame)


def _update(frame: Frame, layout: Layout) -> Update:
    """Return the update of a payload that was cut into its pieces."""
    table = frame.table
    num_blocks = len(table.kept)
    seed = int.from_bytes(frame.sections["seed"], "little")
    columns = _columns(frame)
    rows = zip(
        table.form.sizes.tolist(),
        range(num_blocks),
        table.kept.tolist(),
        *(columns.get(name) or repeat(nothing) for name, nothing in NOTHING.items()),
        [1 << log if log else 0 for log in table.bucket_logs.tolist()],
        repeat(seed),
        strict=False,
    )
    blocks: list[Block] = []
    for kind, row in zip(table.form.kinds.tolist(), rows, strict=True):
        block = BY_CODE[kind].make(Parts._make(row))
        if problem := block.problem():
            raise WireError(f"block {len(blocks)}: {problem}")
        blocks.append(block)
    return Update(layout, blocks)


def _columns(frame: Frame) -> dict[str, list[Any]]:
    """Return each part of every block, as views of one array; parts that none has are absent."""
    table, sections = frame.table, frame.sections
    columns: dict[str, list[Any]] = {}
    if sections["scalars"]:
        columns["scalars"] = _split(_scalars(frame), table.num_scalars)
    if sections["floats"]:
        columns["floats"] = _split(_numbers(sections["floats"], "<f4"), table.num_floats)
    if sections["halves"]:
        columns["halves"] = _split(_numbers(sections["halves"], "<f2"), table.num_halves)
    if sections["flags"]:
        flags = unpack_flags(sections["flags"], int(table.num_signs.sum()))
        columns["negative"] = _split(flags, table.num_signs)
    symbols = _symbols(frame)  # also where there should be none: nothing else may be there
    if table.form.has_positions:
        columns["positions"] = _positions(frame, symbols)
    if table.form.has_levels:
        _put_levels(frame, symbols, columns)
    return columns


def _split(values: NDArray[Any], lengths: Counts) -> list[NDArray[Any]]:
    """Cut an array into one view per block."""
    ends = np.cumsum(lengths).tolist()
    return [values[end - size : end] for end, size in zip(ends, lengths.tolist(), strict=True)]


def _numbers(data: memoryview, dtype: str) -> NDArray[Any]:
    """Return a copy, in the byte order and alignment of this machine."""
    return np.frombuffer(data, dtype).astype(dtype[1:], copy=True)


def _scalars(frame: Frame) -> NDArray[np.float32]:
    """Return the scalars of all blocks end to end."""
    scalars = _numbers(frame.sections["scalars"], "<f4")
    if frame.shared:
        return np.tile(scalars, int(np.count_nonzero(frame.table.num_scalars)))
    if is_shared(scalars, frame.table):
        raise WireError("scalars that all blocks share travel more than once")
    return scalars


def _symbols(frame: Frame) -> Symbols:
    """Return the numbers of all Rice runs end to end."""
    table = frame.table
    remainders = frame.sections["remainders"]
    return rice.decode(remainders, frame.quotients, table.runs, table.max_symbols)


def _positions(frame: Frame, symbols: Symbols) -> list[Positions]:
    """Return the positions of every block; none where the levels of all entries say them."""
    table = frame.table
    found = _split(*_rice_positions(symbols, table))
    if (table.coding_ids != Coding.RICE).any():
        _fill_bitmaps(frame, found)
        for index in np.flatnonzero(table.coding_ids == Coding.ALL):
            found[index] = np.arange(table.kept[index])
    return found


def _put_levels(frame: Frame, symbols: Symbols, columns: dict[str, list[Any]]) -> None:
    """Put in the absolute levels of every block, and the positions of those that say all."""
    table, found = frame.table, columns["positions"]
    coded = _split(symbols[int(table.rice_counts.sum()) :], table.num_levels)
    for index in np.flatnonzero(table.form.quantised):
        found[index], coded[index] = _levels(table, int(index), found[index], coded[index])
    columns["magnitudes"] = coded


def _rice_positions(symbols: Symbols, table: Table) -> tuple[Positions, Counts]:
    """Return the Rice-coded positions of all blocks and how many each has."""
    counts = table.rice_counts
    ends = np.cumsum(counts)
    num_gaps = int(ends[-1]) if len(ends) else 0
    found, used = positions.from_gaps(symbols[:num_gaps], counts), counts > 0
    if (found[ends[used] - 1] >= table.form.sizes[used]).any():
        raise WireError("a position lies past the end of its tensor")
    return found, counts


def _fill_bitmaps(frame: Frame, found: list[Positions]) -> None:
    """Put in the positions of the blocks that have a bitmap."""
    table = frame.table
    lengths = table.bitmap_bits
    flags: list[Flags] = _split(
        unpack_flags(frame.sections["bitmaps"], int(lengths.sum())), lengths
    )
    for index in np.flatnonzero(lengths):
        found[index] = np.flatnonzero(flags[index])
        if len(found[index]) != table.kept[index]:
            raise WireError(f"block {index}: the bitmap does not have as many bits as announced")


def _levels(
    table: Table, index: int, found: Positions, coded: Symbols
) -> tuple[Positions, Symbols]:
    """Return positions and absolute levels of one quantised block."""
    kept = int(table.kept[index])
    if table.zeros_coded[index]:
        found = np.flatnonzero(coded)
        magnitudes = coded[found]
        if len(found) != kept:
            raise WireError(f"block {index}: not as many levels above zero as announced")
    else:
        magnitudes = coded + np.uint32(1) if len(coded) else np.ones(kept, np.uint32)
    if magnitudes.max(initial=0) > MAX_LEVEL:
        raise WireError(f"block {index}: a level above {MAX_LEVEL}")
    return found, magnitudes
