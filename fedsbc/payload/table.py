"""The table of a payload: per block its kind, its codings and how much it keeps."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedsbc.blocks.quantised import MAX_BUCKET_LOG, MAX_LEVEL
from fedsbc.coding import levels
from fedsbc.coding.positions import Codes, Coding, code_of, coding_ids, parameters
from fedsbc.coding.rice import Runs
from fedsbc.lazy import lazy
from fedsbc.payload.form import Counts, Form, form_of

_RICE, _BITMAP = int(Coding.RICE), int(Coding.BITMAP)


@dataclass(frozen=True)
class Table:
    """One row per block, as columns of shape (n,).

    Attributes:
        form: kinds and sizes.
        kept: entries that the block carries, int64.
        codes: coding byte of the positions, uint8; 0 where none travel.
        level_codes: coding byte of the levels, uint8; 0 where none travel.
        bucket_logs: log2 of the entries of a bucket, uint8; 0 for one bucket.
    """

    form: Form
    kept: Counts
    codes: Codes
    level_codes: Codes
    bucket_logs: Codes

    def with_codes(self, codes: Codes, level_codes: Codes) -> "Table":
        """Return the table with other codings; it may be shared and is never changed."""
        columns = (self.form.kinds, self.form.sizes, self.kept, self.bucket_logs)
        return _table(*(column.tobytes() for column in (*columns, codes, level_codes)))

    def _part(self, name: str) -> Counts:
        """Return how many numbers of a part each block has."""
        share = self.form.shares.get(name)
        return self.form.none if share is None else share.fixed + share.per_kept * self.kept

    @lazy
    def num_floats(self) -> Counts:
        """How many float32 each block has."""
        return self._part("floats")

    @lazy
    def num_halves(self) -> Counts:
        """How many float16 each block has."""
        return self._part("halves")

    @lazy
    def num_signs(self) -> Counts:
        """How many sign bits each block has."""
        return self._part("negative")

    @lazy
    def num_scalars(self) -> Counts:
        """How many scalars each block has: none where it keeps nothing, one for each bucket."""
        plain = self.form.num_scalars * (self.kept > 0)
        if not self.form.has_levels:
            return np.asarray(plain)
        sizes = self.form.sizes
        buckets = -(-sizes >> self.bucket_logs.astype(np.int64))
        buckets[self.bucket_logs == 0] = np.minimum(sizes, 1)[self.bucket_logs == 0]
        return np.where(self.form.quantised, buckets, plain)

    @lazy
    def may_share(self) -> bool:
        """Whether two or more blocks have scalars, and all the same number of them."""
        lengths = self.num_scalars[self.num_scalars > 0]
        return len(lengths) > 1 and bool((lengths == lengths[0]).all())

    @lazy
    def coding_ids(self) -> Counts:
        """Id of the coding of each block's positions."""
        return coding_ids(self.codes)

    @lazy
    def rice_counts(self) -> Counts:
        """How many positions of each block are Rice-coded."""
        return np.asarray(self.kept * (self.form.positional & (self.coding_ids == _RICE)))

    @lazy
    def bitmap_bits(self) -> Counts:
        """How many bits the bitmap of each block has, 0 where there is none."""
        return np.asarray(self.form.sizes * (self.coding_ids == _BITMAP))

    @lazy
    def zeros_coded(self) -> NDArray[np.bool_]:
        """Which blocks send a level for every entry, zeros too, and so no position."""
        if not self.form.has_levels:
            return self.form.quantised
        return np.asarray(self.form.quantised & (self.level_codes >> 5 == levels.WITH_ZEROS))

    @lazy
    def num_levels(self) -> Counts:
        """How many levels of each block are coded."""
        if not self.form.has_levels:
            return self.form.none
        coded = levels.num_coded(self.level_codes, self.kept, self.form.sizes)
        return np.asarray(coded * self.form.quantised)

    @lazy
    def runs(self) -> Runs:
        """The Rice runs: positions of all blocks, then, where there are any, levels of all."""
        if not self.form.has_levels:
            return Runs(self.rice_counts, parameters(self.codes))
        lengths = np.concatenate([self.rice_counts, self.num_levels])
        return Runs(lengths, parameters(np.concatenate([self.codes, self.level_codes])))

    @lazy
    def max_symbols(self) -> Counts:
        """The largest number that each of `runs` may hold."""
        of_positions = self.form.sizes - self.kept
        if not self.form.has_levels:
            return of_positions
        most = np.where(self.zeros_coded, MAX_LEVEL, MAX_LEVEL - 1)
        return np.concatenate([of_positions, most])

    @lazy
    def max_unary_bits(self) -> int:
        """The most unary bits that an encoder makes of `runs`; see `fedsbc.coding.levels`."""
        num_blocks, runs = len(self.kept), self.runs
        lengths = runs.lengths[:num_blocks]
        ones = (self.form.sizes - self.kept) >> runs.parameters[:num_blocks]
        positions = int((lengths + ones * (lengths > 0)).sum())
        return positions + levels.MAX_UNARY_BITS * int(self.num_levels.sum())

    def problem(self) -> str:
        """Say what is wrong with a row, '' if every one is as an encoder may write it."""
        sizes, kept, ids = self.form.sizes, self.kept, self.coding_ids
        b, nothing = parameters(self.codes), kept == 0
        everything = self.codes == code_of(Coding.ALL)
        rules = [
            ("more entries kept than there are", kept > sizes),
            ("an unknown coding of positions", ids > max(Coding)),
            ("a parameter for a coding without one", (ids != _RICE) & (b > 0)),
            ("a Rice parameter too large", (b > 0) & ((1 << np.maximum(b - 1, 0)) >= sizes)),
            ("a coding for no position", nothing & (self.codes > 0)),
            (
                "coding 'all' for some positions",
                everything & (kept != sizes) & ~self.zeros_coded,
            ),
        ]
        if self.form.has_levels:
            rules += [
                ("a coding for no level", nothing & (self.level_codes > 0)),
                ("positions of levels for every entry", self.zeros_coded & ~everything),
                ("an unknown coding of levels", ~levels.is_known(self.level_codes)),
                ("a bucket size out of range", self.bucket_logs > MAX_BUCKET_LOG),
            ]
        broken = np.array([rule for _, rule in rules])
        if not broken.any():
            return ""
        rule, block = np.argwhere(broken)[0]
        return f"block {block}: {rules[rule][0]}"


@lru_cache(maxsize=32)  # most updates of a run have the table of the one before
def _table(
    kinds: bytes, sizes: bytes, kept: bytes, bucket_logs: bytes, codes: bytes, level_codes: bytes
) -> Table:
    return Table(
        form_of(np.frombuffer(kinds, np.uint8), np.frombuffer(sizes, np.int64)),
        np.frombuffer(kept, np.int64),
        np.frombuffer(codes, np.uint8),
        np.frombuffer(level_codes, np.uint8),
        np.frombuffer(bucket_logs, np.uint8),
    )
