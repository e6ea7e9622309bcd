"""A payload in words: what its header says, where its bits go, and a line per block."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedsbc.coding import levels
from fedsbc.coding.positions import Coding
from fedsbc.layout import Layout, TensorSpec
from fedsbc.payload.accounting import BlockBits, PayloadBits, block_bits, measure
from fedsbc.payload.decoder import decode
from fedsbc.payload.frame import VERSION, Frame, Header, read_header, unpack
from fedsbc.payload.kinds import BY_CODE
from fedsbc.payload.table import Table
from fedsbc.updates import Block

_COLUMNS = (
    "tensor", "shape", "kind", "coding", "b", "kept", "of", "position bits", "per position",
    "value bits", "header bits", "value",
)  # fmt: skip
_LEFT = ("tensor", "shape", "kind", "coding", "value")
_LEVEL_CODINGS = {levels.BEYOND_ONE: "levels", levels.ONE: "ones", levels.WITH_ZEROS: "all levels"}


def explain(data: bytes | memoryview, layout: Layout | None) -> str:
    """Return what a payload says, as text of several lines.

    Args:
        data: the payload.
        layout: the tensors that it is for; without them only the header can be read.

    Raises:
        WireError: not a payload, or not one for that layout.
    """
    header = read_header(data)
    lines = _header_lines(header, memoryview(data).nbytes)
    if layout is None:
        return "\n".join(lines)
    update = decode(data, layout)
    frame, bits = unpack(data, layout), measure(data, layout)
    rows = _rows(layout, update.blocks, frame, block_bits(frame))
    return "\n".join([*lines, "", *_bit_lines(bits, layout.size), "", *_aligned(rows)])


def _header_lines(header: Header, num_bytes: int) -> list[str]:
    kind = f"all {BY_CODE[header.kind].name}" if header.kind else "each its own"
    return [
        f"payload   {num_bytes} bytes, fedsbc.v{VERSION}, checksum right",
        f"layout    {header.layout_hash}",
        f"blocks    {kind}",
        f"scalars   {'one for all blocks' if header.shared else 'each block its own'}",
    ]


def _bit_lines(bits: PayloadBits, size: int) -> list[str]:
    kept, dense_bits = bits.num_kept, 32 * size
    shares = (
        ("positions", bits.position_bits),
        ("values", bits.value_bits),
        ("headers", bits.header_bits),
        ("padding", bits.padding_bits),
        ("payload", bits.payload_bits),
    )
    width = len(str(bits.payload_bits))
    lines = [
        f"{name:<10}{number:>{width}} bits{f'  {number / kept:.3f} per kept entry' if kept else ''}"
        for name, number in shares
    ]
    density = f"{100 * kept / size:.4g} %" if size else "none"
    kept_line = f"{'kept':<10}{kept:>{width}} of {size} entries ({density})"
    ratio = f"{'dense':<10}{dense_bits:>{width}} bits, {dense_bits / bits.payload_bits:.1f} times"
    return [kept_line, *lines, f"{ratio} the payload"]


def _rows(
    layout: Layout, blocks: Sequence[Block], frame: Frame, bits: BlockBits
) -> list[tuple[str, ...]]:
    table = frame.table
    rows: list[tuple[str, ...]] = [_COLUMNS]
    for index, (tensor, block) in enumerate(zip(layout.tensors, blocks, strict=True)):
        kept, position_bits = int(table.kept[index]), int(bits.position_bits[index])
        coding, parameter = _coding(table, index)
        rows.append(
            (
                *_tensor(tensor),
                BY_CODE[int(table.form.kinds[index])].name,
                coding,
                parameter,
                str(kept),
                str(tensor.size),
                str(position_bits),
                f"{position_bits / kept:.3f}" if position_bits else "-",
                str(bits.value_bits[index]),
                str(bits.header_bits[index]),
                _value(block),
            )
        )
    return rows


def _tensor(tensor: TensorSpec) -> tuple[str, str]:
    return tensor.name, "x".join(map(str, tensor.shape)) or "scalar"


def _coding(table: Table, index: int) -> tuple[str, str]:
    """Return the codings of positions and levels, and their Rice parameters."""
    names, parameters = [], []
    code, level_code = int(table.codes[index]), int(table.level_codes[index])
    if table.form.seeded[index]:
        names.append("seed")
    if table.form.positional[index] and table.kept[index] and not table.zeros_coded[index]:
        names.append(Coding(code >> 5).name.lower())
        parameters += [str(code & 31)] if code >> 5 == Coding.RICE else []
    if table.form.quantised[index] and table.kept[index]:
        names.append(_LEVEL_CODINGS[level_code >> 5])
        parameters += [str(level_code & 31)] if level_code >> 5 != levels.ONE else []
    return " + ".join(names) or "-", ", ".join(parameters) or "-"


def _value(block: Block) -> str:
    """Return the scalars of a block, or the range of its numbers."""
    fields = vars(block)
    scalars = [f"{name} {fields[name]:.6g}" for name in fields if _is_scalar(fields[name])]
    arrays = [fields[name] for name in ("values", "scales") if name in fields]
    ranges = [f"{a.min():.4g} to {a.max():.4g}" for a in arrays if len(a)]
    return ", ".join(scalars + ranges).replace("_", " ") or "-"


def _is_scalar(value: Any) -> bool:
    return isinstance(value, np.float32)


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    return [
        "  ".join(
            cell.ljust(width) if name in _LEFT else cell.rjust(width)
            for name, cell, width in zip(_COLUMNS, row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
