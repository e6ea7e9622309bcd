"""Update to bytes."""

from typing import Any, NamedTuple

import numpy as np

from fedsbc.coding import levels, positions, rice
from fedsbc.coding.positions import Codes, Coding
from fedsbc.coding.runs import Symbols, pack_flags
from fedsbc.errors import UpdateError
from fedsbc.payload import frame
from fedsbc.payload.form import form_of
from fedsbc.payload.kinds import BY_BLOCK
from fedsbc.payload.parts import Parts
from fedsbc.payload.table import Table
from fedsbc.updates import SeededBlock, Update


class Choices(NamedTuple):
    """The codings of the blocks, one byte each, shape (n,), uint8.

    Attributes:
        codes: of positions, see `fedsbc.coding.positions`; 0 where there are none.
        level_codes: of levels, see `fedsbc.coding.levels`; 0 where there are none.
    """

    codes: Codes
    level_codes: Codes


def encode(update: Update, choices: Choices | None = None) -> bytes:
    """Return the payload of an update: one byte string for one update and one choice of codings.

    Args:
        update: what to send.
        choices: the codings to use, as another payload had them; the shortest by default.

    Raises:
        UpdateError: a block must not be sent (not finite, positions not increasing, ...).
    """
    parts = [_take(update, index) for index in range(len(update.blocks))]
    table = _table(update, parts)
    gaps = _gaps(parts, table)
    chosen = choices or _choose(parts, table, gaps)
    table = table.with_codes(chosen.codes, chosen.level_codes)
    if choices and (problem := table.problem()):
        raise UpdateError(f"an update that cannot be coded as asked: {problem}")
    scalars = _join([p.scalars for p in parts], "<f4")
    shared = frame.is_shared(scalars, table)
    symbols = _symbols(parts, table, gaps)
    remainders, unary = rice.encode(symbols, table.runs)
    sections: dict[str, frame.Buffer] = {
        "seed": _seed(parts, table),
        "scalars": (scalars[: table.num_scalars.max()] if shared else scalars).data,
        "floats": _part(parts, table, "floats", "<f4").data,
        "halves": _part(parts, table, "halves", "<f2").data,
        "flags": pack_flags(_part(parts, table, "negative", np.bool_)),
        "bitmaps": _bitmaps(parts, table),
        "remainders": remainders,
        "unary": unary,
    }
    return frame.pack(update.layout, table, shared, sections)


def _take(update: Update, index: int) -> Parts:
    """Take a block apart, after a look at its values."""
    block = update.blocks[index]
    if problem := block.problem():
        name = update.layout.tensors[index].name
        raise UpdateError(f"tensor '{name}' cannot be sent: {problem}")
    if isinstance(block, SeededBlock) and block.index != index:
        raise UpdateError(f"the block of tensor {index} draws as tensor {block.index} does")
    return Parts(block.size, index, block.num_kept, **BY_BLOCK[type(block)].take(block))


def _table(update: Update, parts: list[Parts]) -> Table:
    """Return the table without codings."""
    none = np.zeros(len(parts), np.uint8)
    kinds = np.array([BY_BLOCK[type(block)].code for block in update.blocks], np.uint8)
    return Table(
        form=form_of(kinds, update.layout.sizes),
        kept=np.array([p.kept for p in parts], np.int64),
        codes=none,
        level_codes=none,
        bucket_logs=np.array([max(p.bucket_size.bit_length() - 1, 0) for p in parts], np.uint8),
    )


def _join(arrays: list[Any], dtype: Any) -> Any:
    """Lay arrays end to end."""
    filled = [array for array in arrays if len(array)]
    joined = np.concatenate(filled) if len(filled) > 1 else (filled or [np.zeros(0, dtype)])[0]
    return np.ascontiguousarray(joined, dtype)


def _part(parts: list[Parts], table: Table, name: str, dtype: Any) -> Any:
    """Lay a part of all blocks end to end; nothing where no block has it."""
    return _join([getattr(p, name) for p in parts] if name in table.form.shares else [], dtype)


def _seed(parts: list[Parts], table: Table) -> bytes:
    """Return the seed from which blocks draw their positions, if any does."""
    if not table.form.has_seed:
        return b""
    seeds = {p.seed for p, seeded in zip(parts, table.form.seeded, strict=True) if seeded}
    if len(seeds) > 1:
        raise UpdateError(f"the blocks of one update draw from {len(seeds)} seeds, expected one")
    return seeds.pop().to_bytes(8, "little")


def _gaps(parts: list[Parts], table: Table) -> Symbols:
    """Return gap - 1 of all positions of all blocks, checked."""
    joined = _join([p.positions for p in parts], np.int64)
    counts = table.kept * table.form.positional
    gaps = positions.gaps(joined, counts)
    last = joined[np.cumsum(counts)[counts > 0] - 1]
    if len(gaps) and (gaps.min() < 0 or (last >= table.form.sizes[counts > 0]).any()):
        raise UpdateError("positions are not strictly increasing within their tensor")
    return gaps.astype(np.uint32)


def _choose(parts: list[Parts], table: Table, gaps: Symbols) -> Choices:
    """Return the shortest codings."""
    counts = table.kept * table.form.positional
    codes = positions.choose(gaps, counts, table.form.sizes)
    if not table.form.has_levels:
        return Choices(codes, table.level_codes)
    magnitudes = _join([p.magnitudes for p in parts], np.uint32)
    quantised, sizes = table.form.quantised, table.form.sizes
    kept, sizes = table.kept * quantised, sizes * quantised
    beside = levels.choose_beyond_one(magnitudes, kept)
    alone = levels.choose_with_zeros(magnitudes, kept, sizes)
    position_bits = positions.coded_bits(gaps, counts, table.form.sizes, codes)
    better = quantised & (kept > 0) & (alone.bits < beside.bits + position_bits)
    return Choices(
        np.where(better, positions.code_of(Coding.ALL), codes).astype(np.uint8),
        np.where(better, alone.codes, beside.codes).astype(np.uint8),
    )


def _symbols(parts: list[Parts], table: Table, gaps: Symbols) -> Symbols:
    """Return what `table.runs` cut: the Rice-coded gaps, then the levels."""
    counts = table.kept * table.form.positional
    coded = table.rice_counts
    if (coded != counts).any():
        gaps = gaps[np.repeat(coded > 0, counts)]
    if not table.num_levels.any():
        return gaps
    pieces = [gaps]
    for p, with_zeros, num_levels in zip(parts, table.zeros_coded, table.num_levels, strict=True):
        if with_zeros:
            every = np.zeros(p.size, np.uint32)
            every[p.positions] = p.magnitudes
            pieces.append(every)
        elif num_levels:
            pieces.append(p.magnitudes - np.uint32(1))
    return np.concatenate(pieces)


def _bitmaps(parts: list[Parts], table: Table) -> bytes:
    """Return the bitmaps of all blocks that have one, bit after bit."""
    flags = []
    for index in np.flatnonzero(table.bitmap_bits):
        flag = np.zeros(parts[index].size, np.bool_)
        flag[parts[index].positions] = True
        flags.append(flag)
    return pack_flags(_join(flags, np.bool_))
