"""The table of a payload: per block its kind, its codings and how much it keeps."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedsbc.blocks.quantised import MAX_BUCKET_LOG, MAX_LEVEL
from fedsbc.coding import levels
from fedsbc.coding.positions import Codes, Coding, code_of, coding_ids, parameters
from fedsbc.coding.rice import Runs
from fedsbc.payload.kinds import KINDS
from fedsbc.payload.parts import Extent

Counts = NDArray[np.int64]
"""One number per block, shape (n,)."""

_KEPT, _ALL = int(Extent.KEPT), int(Extent.ALL)
_RICE, _BITMAP = int(Coding.RICE), int(Coding.BITMAP)


def _lookup(attribute: str) -> NDArray[np.int64]:
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


@dataclass(frozen=True)
class Table:
    """One row per block, as columns of shape (n,).

    Attributes:
        kinds: code of the kind, uint8.
        sizes: entries of the tensor, int64.
        kept: entries that the block carries, int64.
        codes: coding byte of the positions, uint8; 0 where none travel.
        level_codes: coding byte of the levels, uint8; 0 where none travel.
        bucket_logs: log2 of the entries of a bucket, uint8; 0 for one bucket.
    """

    kinds: Codes
    sizes: Counts
    kept: Counts
    codes: Codes
    level_codes: Codes
    bucket_logs: Codes

    @cached_property
    def uniform_kind(self) -> int:
        """The kind of all blocks; 0 if they differ or there are none."""
        kinds = self.kinds
        return int(kinds[0]) if len(kinds) and (kinds == kinds[0]).all() else 0

    @cached_property
    def positional(self) -> NDArray[np.bool_]:
        """Which blocks have coded positions."""
        return np.asarray(_EXTENTS["positions"][self.kinds] == _KEPT)

    @cached_property
    def quantised(self) -> NDArray[np.bool_]:
        """Which blocks have levels."""
        return np.asarray(_QUANTISED[self.kinds] > 0)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Which blocks say how many entries they keep."""
        return np.asarray(_COUNTED[self.kinds] > 0)

    @cached_property
    def seeded(self) -> NDArray[np.bool_]:
        """Which blocks draw their positions from the update's seed."""
        return np.asarray(_SEEDED[self.kinds] > 0)

    def _extent(self, part: str) -> Counts:
        """Return how many numbers of a part each block has."""
        extents = _EXTENTS[part][self.kinds]
        return np.asarray((extents == _ALL) * self.sizes + (extents == _KEPT) * self.kept)

    @cached_property
    def num_floats(self) -> Counts:
        """How many float32 each block has."""
        return self._extent("floats")

    @cached_property
    def num_halves(self) -> Counts:
        """How many float16 each block has."""
        return self._extent("halves")

    @cached_property
    def num_signs(self) -> Counts:
        """How many sign bits each block has."""
        return self._extent("negative")

    @cached_property
    def num_scalars(self) -> Counts:
        """How many scalars each block has: none where it keeps nothing, one for each bucket."""
        buckets = -(-self.sizes >> self.bucket_logs.astype(np.int64))
        buckets[self.bucket_logs == 0] = np.minimum(self.sizes, 1)[self.bucket_logs == 0]
        plain = _NUM_SCALARS[self.kinds] * (self.kept > 0)
        return np.where(self.quantised, buckets, plain)

    @cached_property
    def rice_counts(self) -> Counts:
        """How many positions of each block are Rice-coded."""
        return np.asarray(self.kept * (self.positional & (coding_ids(self.codes) == _RICE)))

    @cached_property
    def bitmap_bits(self) -> Counts:
        """How many bits the bitmap of each block has, 0 where there is none."""
        return np.asarray(self.sizes * (coding_ids(self.codes) == _BITMAP))

    @cached_property
    def zeros_coded(self) -> NDArray[np.bool_]:
        """Which blocks send a level for every entry, zeros too, and so no position."""
        return np.asarray(self.quantised & (self.level_codes >> 5 == levels.WITH_ZEROS))

    @cached_property
    def num_levels(self) -> Counts:
        """How many levels of each block are coded."""
        coded = levels.num_coded(self.level_codes, self.kept, self.sizes)
        return np.asarray(coded * self.quantised)

    @cached_property
    def runs(self) -> Runs:
        """The Rice runs: positions of all blocks, then levels of all blocks."""
        lengths = np.concatenate([self.rice_counts, self.num_levels])
        return Runs(lengths, parameters(np.concatenate([self.codes, self.level_codes])))

    @cached_property
    def max_symbols(self) -> Counts:
        """The largest number that each of `runs` may hold."""
        most = np.where(self.zeros_coded, MAX_LEVEL, MAX_LEVEL - 1)
        return np.concatenate([self.sizes - self.kept, most])

    @property
    def max_unary_bits(self) -> int:
        """The most unary bits that an encoder makes of `runs`; see `fedsbc.coding.levels`."""
        num_blocks, runs = len(self.kinds), self.runs
        lengths = runs.lengths[:num_blocks]
        ones = (self.sizes - self.kept) >> runs.parameters[:num_blocks]
        positions = int((lengths + ones * (lengths > 0)).sum())
        return positions + levels.MAX_UNARY_BITS * int(self.num_levels.sum())

    @cached_property
    def count_bytes(self) -> Counts:
        """Bytes of each block's count: as many as the tensor's size takes, 0 where untold."""
        widths = sum((self.sizes >= 1 << shift).astype(np.int64) for shift in (0, 8, 16, 24))
        return np.asarray(widths * self.counted)

    @property
    def header_bytes(self) -> Counts:
        """Bytes of each row, at most 8."""
        per_row = (self.uniform_kind == 0) + self.positional + 2 * self.quantised
        return np.asarray(per_row + self.count_bytes)

    def problem(self) -> str:
        """Say what is wrong with a row, '' if every one is as an encoder may write it."""
        ids, b = coding_ids(self.codes), parameters(self.codes)
        everything = code_of(Coding.ALL)
        nothing = self.kept == 0
        rules = (
            ("more entries kept than there are", self.kept > self.sizes),
            ("an unknown coding of positions", ids > max(Coding)),
            ("a parameter for a coding without one", (ids != _RICE) & (b > 0)),
            ("a Rice parameter too large", (b > 0) & ((1 << np.maximum(b - 1, 0)) >= self.sizes)),
            ("a coding for no position", nothing & ((self.codes > 0) | (self.level_codes > 0))),
            (
                "coding 'all' for some positions",
                (self.codes == everything) & (self.kept != self.sizes) & ~self.zeros_coded,
            ),
            ("positions of levels for every entry", self.zeros_coded & (self.codes != everything)),
            ("an unknown coding of levels", ~levels.is_known(self.level_codes)),
            ("a bucket size out of range", self.bucket_logs > MAX_BUCKET_LOG),
        )
        broken = np.array([rule for _, rule in rules])
        if not broken.any():
            return ""
        rule, block = np.argwhere(broken)[0]
        return f"block {block}: {rules[rule][0]}"
