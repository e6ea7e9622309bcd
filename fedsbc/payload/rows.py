"""The table of a payload as bytes, column after column; see the byte table of `fedsbc.payload`."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedsbc.coding.positions import Codes
from fedsbc.errors import WireError
from fedsbc.payload.form import COUNT_BYTES, KNOWN_KINDS, Counts, form_of
from fedsbc.payload.table import Table


def to_bytes(table: Table) -> bytes:
    """Return the table, column after column."""
    form = table.form
    counts = table.kept.astype("<u4").view(np.uint8).reshape(-1, COUNT_BYTES)
    columns = (
        form.kinds if form.uniform_kind == 0 else form.kinds[:0],
        table.codes[form.positional],
        table.level_codes[form.quantised],
        table.bucket_logs[form.quantised],
        counts[form.told],
    )
    return b"".join(column.tobytes() for column in columns)


def parse(data: memoryview, kind: int, sizes: Counts) -> tuple[Table, memoryview]:
    """Return the table at the head of `data`, checked, and what follows it.

    Args:
        data: the payload after the update's header.
        kind: the kind of all blocks, or 0 if each row says its own.
        sizes: entries of the tensors.

    Raises:
        WireError: too short, or a row that no encoder writes.
    """
    num_blocks = len(sizes)
    kinds = np.full(num_blocks, kind, np.uint8)
    if kind == 0:
        kinds = np.frombuffer(_head(data, num_blocks), np.uint8)
    if not KNOWN_KINDS[kinds].all():
        raise WireError("a block is of a kind that this version does not know")
    form = form_of(kinds, sizes)
    if form.uniform_kind != kind:
        raise WireError("the kinds of the blocks are not written in the one possible way")
    head = _head(data, form.table_bytes)
    return _table(kinds.tobytes(), sizes.tobytes(), head), data[len(head) :]


def _head(data: memoryview, count: int) -> bytes:
    if count > len(data):
        raise WireError("the payload ends within the table of its blocks")
    return bytes(data[:count])


@lru_cache(maxsize=32)  # most updates of a run have the table of the one before
def _table(kinds: bytes, sizes: bytes, head: bytes) -> Table:
    """Return the table whose rows are all of `head`; it is shared and never changed."""
    form = form_of(np.frombuffer(kinds, np.uint8), np.frombuffer(sizes, np.int64))
    reader = _Columns(head)
    if form.uniform_kind == 0:
        reader.take(len(kinds))
    codes = reader.column(form.positional)
    level_codes = reader.column(form.quantised)
    bucket_logs = reader.column(form.quantised)
    counts = np.zeros((len(kinds), COUNT_BYTES), np.uint8)
    counts[form.told] = reader.take(int(form.count_bytes.sum()))
    told = counts.view("<u4").ravel().astype(np.int64)
    kept = np.where(form.counted, told, form.sizes)
    table = Table(form, kept, codes, level_codes, bucket_logs)
    if problem := table.problem():
        raise WireError(problem)
    return table


class _Columns:
    """Takes bytes from the front of a table."""

    def __init__(self, data: bytes) -> None:
        self._data, self._start = data, 0

    def take(self, count: int) -> Codes:
        column = np.frombuffer(self._data, np.uint8, count, self._start)
        self._start += count
        return column

    def column(self, present: NDArray[np.bool_]) -> Codes:
        values = np.zeros(len(present), np.uint8)
        values[present] = self.take(int(np.count_nonzero(present)))
        return values
