"""What the kinds and sizes of blocks alone say of a table: the same for update after update."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsbc.coding.positions import Codes
from fedsbc.payload.kinds import KINDS
from fedsbc.payload.parts import Extent

Counts = NDArray[np.int64]
"""One number per block, shape (n,)."""

Choice = NDArray[np.bool_]
"""Which blocks, shape (n,)."""

COUNT_BYTES = 4
"""The most that the count of a block takes."""


def _lookup(attribute: str) -> Counts:
    """Return an attribute of every kind, indexed by its code; 0 for a code of none."""
    column = np.zeros(256, np.int64)
    for kind in KINDS:
        column[kind.code] = getattr(kind, attribute)
    return column


_EXTENTS = {name: _lookup(name) for name in ("positions", "floats", "halves", "negative")}
_COUNTED, _QUANTISED, _NUM_SCALARS = map(_lookup, ("counted", "quantised", "num_scalars"))
KNOWN_KINDS = _lookup("code") > 0
"""Whether a kind has that code, shape (256,)."""
_SEEDED = _COUNTED & (_EXTENTS["positions"] == Extent.NONE)


class Share(NamedTuple):
    """How many numbers of a part a block has: those of all entries, or of the kept ones.

    Attributes:
        fixed: numbers of each block whatever it keeps.
        per_kept: numbers of each block for each entry that it keeps, 0 or 1.
    """

    fixed: Counts
    per_kept: Counts


class Form(NamedTuple):
    """Columns of shape (n,) for blocks of given kinds and sizes; read only.

    Attributes:
        kinds: code of the kind, uint8.
        sizes: entries of the tensor, int64.
        uniform_kind: the kind of all blocks; 0 if they differ or there are none.
        none: zeros, int64.
        positional: which blocks have coded positions.
        quantised: which have levels.
        counted: which say how many entries they keep.
        seeded: which draw their positions from the update's seed.
        has_positions: whether any has coded positions.
        has_levels: whether any has levels.
        has_seed: whether any draws its positions.
        shares: of `floats`, `halves` and `negative`; parts that no block has are absent.
        num_scalars: scalars of a block that keeps an entry and has no buckets.
        count_bytes: bytes of its count: as many as its size takes, 0 where untold.
        header_bytes: bytes of its row, at most 8.
        table_bytes: bytes of all rows.
        told: which of the `COUNT_BYTES` bytes of its count travel, shape (n, COUNT_BYTES).
    """

    kinds: Codes
    sizes: Counts
    uniform_kind: int
    none: Counts
    positional: Choice
    quantised: Choice
    counted: Choice
    seeded: Choice
    has_positions: bool
    has_levels: bool
    has_seed: bool
    shares: dict[str, Share]
    num_scalars: Counts
    count_bytes: Counts
    header_bytes: Counts
    table_bytes: int
    told: Choice


def form_of(kinds: Codes, sizes: Counts) -> Form:
    """Return the form of blocks of kinds that are all known."""
    return _form(kinds.tobytes(), sizes.tobytes())


@lru_cache(maxsize=16)  # a run has one or two models, and schemes for two directions
def _form(kinds_bytes: bytes, sizes_bytes: bytes) -> Form:
    kinds = np.frombuffer(kinds_bytes, np.uint8)
    sizes = np.frombuffer(sizes_bytes, np.int64)
    positional = _EXTENTS["positions"][kinds] == Extent.KEPT
    quantised, counted, seeded = (column[kinds] > 0 for column in (_QUANTISED, _COUNTED, _SEEDED))
    uniform_kind = int(kinds[0]) if len(kinds) and (kinds == kinds[0]).all() else 0
    widths = sum((sizes >= 1 << shift).astype(np.int64) for shift in (0, 8, 16, 24))
    count_bytes = np.asarray(widths * counted)
    header_bytes = np.asarray(int(uniform_kind == 0) + positional + 2 * quantised + count_bytes)
    return Form(
        kinds=kinds,
        sizes=sizes,
        uniform_kind=uniform_kind,
        none=np.zeros(len(kinds), np.int64),
        positional=positional,
        quantised=quantised,
        counted=counted,
        seeded=seeded,
        has_positions=bool(positional.any()),
        has_levels=bool(quantised.any()),
        has_seed=bool(seeded.any()),
        shares=_shares(kinds, sizes),
        num_scalars=_NUM_SCALARS[kinds],
        count_bytes=count_bytes,
        header_bytes=header_bytes,
        table_bytes=int(header_bytes.sum()),
        told=np.arange(COUNT_BYTES) < count_bytes[:, None],
    )


def _shares(kinds: Codes, sizes: Counts) -> dict[str, Share]:
    """Return who has how much of the parts that anybody has."""
    found = {}
    for name in ("floats", "halves", "negative"):
        extents = _EXTENTS[name][kinds]
        if extents.any():
            kept = (extents == Extent.KEPT).astype(np.int64)
            found[name] = Share((extents == Extent.ALL) * sizes, kept)
    return found
