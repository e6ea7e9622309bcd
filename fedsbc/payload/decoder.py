"""Bytes to update: strict, and bounded by the layout before anything is allocated."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsbc.blocks import MAX_LEVEL, Flags, Positions
from fedsbc.coding import positions, rice
from fedsbc.coding.positions import Coding
from fedsbc.coding.runs import Symbols, unpack_flags
from fedsbc.errors import WireError
from fedsbc.layout import Layout
from fedsbc.payload.accounting import PayloadBits, bits_of
from fedsbc.payload.frame import Frame, is_shared, unpack
from fedsbc.payload.kinds import BY_CODE
from fedsbc.payload.parts import Parts
from fedsbc.payload.table import Counts, Table
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
    columns = _columns(frame)
    seed = int.from_bytes(frame.sections["seed"], "little")
    heads = zip(
        table.kinds.tolist(),
        table.sizes.tolist(),
        table.kept.tolist(),
        table.bucket_logs.tolist(),
        strict=True,
    )
    blocks = []
    for index, (kind, size, kept, bucket_log) in enumerate(heads):
        own = {name: column[index] for name, column in columns.items()}
        bucket_size = 1 << bucket_log if bucket_log else 0
        parts = Parts(size, index, kept, bucket_size=bucket_size, seed=seed, **own)
        block = BY_CODE[kind].make(parts)
        if problem := block.problem():
            raise WireError(f"block {index}: {problem}")
        blocks.append(block)
    return Update(layout, blocks)


def _columns(frame: Frame) -> dict[str, list[Any]]:
    """Return each part of every block, as views of one array; parts that none has are absent."""
    table, sections = frame.table, frame.sections
    num_flags = int(table.num_signs.sum())
    flat = {
        "scalars": (_scalars(frame), table.num_scalars),
        "floats": (_numbers(sections["floats"], "<f4"), table.num_floats),
        "halves": (_numbers(sections["halves"], "<f2"), table.num_halves),
        "negative": (unpack_flags(sections["flags"], num_flags), table.num_signs),
    }
    columns = {name: _split(*part) for name, part in flat.items() if len(part[0])}
    found, coded = _positions_and_levels(frame)
    if table.positional.any():
        columns["positions"] = found
    if table.quantised.any():
        columns["magnitudes"] = coded
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


def _positions_and_levels(frame: Frame) -> tuple[list[Positions], list[Symbols]]:
    """Return positions and absolute levels of every block."""
    table, num_blocks = frame.table, len(frame.table.kinds)
    runs = table.runs
    symbols = rice.decode(frame.sections["remainders"], frame.stops, runs, table.max_symbols)
    num_gaps = int(runs.lengths[:num_blocks].sum())
    found = _split(*_rice_positions(symbols[:num_gaps], table))
    _fill_bitmaps(frame, found)
    coded = _split(symbols[num_gaps:], table.num_levels)
    for index in np.flatnonzero(positions.coding_ids(table.codes) == Coding.ALL):
        found[index] = np.arange(table.kept[index])
    for index in np.flatnonzero(table.quantised):
        found[index], coded[index] = _levels(table, int(index), found[index], coded[index])
    return found, coded


def _rice_positions(symbols: Symbols, table: Table) -> tuple[Positions, Counts]:
    """Return the Rice-coded positions of all blocks and how many each has."""
    counts = table.rice_counts
    found = positions.from_gaps(symbols, counts)
    last = found[np.cumsum(counts)[counts > 0] - 1]
    if (last >= table.sizes[counts > 0]).any():
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
