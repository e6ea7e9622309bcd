"""The ledger: every message that crossed the network, and how many bits it was.

All figures are bits. A row is one message of one client in one direction; totals say what they
are summed over. Rows are ordered by (round, kind, client id, direction), whatever the order in
which they were added, so that the order of arrival never shows.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsbc.errors import RunError
from fedsbc.ledger_row import (
    AMOUNTS,
    DIRECTIONS,
    KEYS,
    KINDS,
    Direction,
    Kind,
    LedgerRow,
    RunTotals,
    Totals,
)

__all__ = ["Direction", "Kind", "Ledger", "LedgerRow", "RunTotals", "Totals"]


class Ledger:
    """The messages of a run, kept as columns: 96 bytes a row.

    Sums per direction and kind are kept up to date, so that asking where a run stands costs the
    same in the first round and in the thousandth.
    """

    def __init__(self, rows: Iterable[LedgerRow] = ()) -> None:
        self._keys = np.empty((64, len(KEYS)), np.int64)
        self._amounts = np.empty((64, len(AMOUNTS)), np.int64)
        self._sums = np.zeros((len(KINDS), len(DIRECTIONS), 1 + len(AMOUNTS)), np.int64)
        self._num_rows = 0
        for row in rows:
            self.add(row)

    def __len__(self) -> int:
        return self._num_rows

    def add(self, row: LedgerRow) -> None:
        """Add one message."""
        index = self._num_rows
        if index == len(self._keys):
            self._keys = np.concatenate([self._keys, np.empty_like(self._keys)])
            self._amounts = np.concatenate([self._amounts, np.empty_like(self._amounts)])
        kind, direction = KINDS.index(row.kind), DIRECTIONS.index(row.direction)
        self._keys[index] = (row.round, kind, row.client_id, direction)
        self._amounts[index] = row.amounts()
        sums = self._sums[kind, direction]
        sums[0] += 1
        sums[1:] += self._amounts[index]
        self._num_rows = index + 1

    @property
    def rows(self) -> list[LedgerRow]:
        """All rows, in order."""
        columns = self.columns()
        return [
            LedgerRow(**dict(zip(columns, values, strict=True)))
            for values in zip(*(column.tolist() for column in columns.values()), strict=True)
        ]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return each column in row order, shape (rows,): int64, and names as strings."""
        keys, amounts = self._keys[: len(self)], self._amounts[: len(self)]
        # The amounts break ties: a message that came twice may have rows of different size.
        order = np.lexsort(np.hstack([keys, amounts]).T[::-1])
        by_name = dict(zip(KEYS + AMOUNTS, np.hstack([keys, amounts])[order].T, strict=True))
        by_name["kind"] = np.array(KINDS)[by_name["kind"]]
        by_name["direction"] = np.array(DIRECTIONS)[by_name["direction"]]
        return {name: by_name[name] for name in LedgerRow.__dataclass_fields__}

    def totals(
        self,
        direction: Direction | None = None,
        *,
        kind: Kind | None = None,
        client_id: int | None = None,
        round: int | None = None,
    ) -> Totals:
        """Sum the messages that match all that is given; with no argument, all of them."""
        if client_id is None and round is None:
            return _totals(self._sums[_index(kind, KINDS), _index(direction, DIRECTIONS)])
        chosen = self._chosen(direction, kind, client_id, round)
        return _totals(_counted(self._amounts[: len(self)][chosen]))

    def totals_by_client(self, direction: Direction | None = None) -> dict[int, Totals]:
        """Sum the messages of each client that has any, by ascending client id."""
        chosen = self._chosen(direction, None, None, None)
        amounts = _counted(self._amounts[: len(self)][chosen])
        client_ids, index = np.unique(self._keys[: len(self), 2][chosen], return_inverse=True)
        order = np.argsort(index, kind="stable")
        parts = np.split(amounts[order], np.flatnonzero(np.diff(index[order])) + 1)
        return {int(i): _totals(part) for i, part in zip(client_ids, parts, strict=False)}

    def run_totals(self) -> RunTotals:
        """Return where the run stands, summed over all clients."""
        up, down = self.totals("up"), self.totals("down")
        return RunTotals(up, down, self.up_ratio_fedavg(), self.down_ratio_fedavg())

    def up_ratio_dsgd(self, local_steps: float) -> float | None:
        """Return how many times fewer bits went up than by dense SGD at every local step.

        Dense SGD is charged 32 d for each local step of each training message; the run is
        charged every payload bit that went up, summed over all clients.

        Args:
            local_steps: steps between two exchanges; the mean, where it is not one number.
        """
        return self._ratio("up", local_steps)

    def up_ratio_fedavg(self) -> float | None:
        """Return how many times fewer bits went up than by dense FedAvg.

        FedAvg is charged 32 d for each training message; None if nothing went up.
        """
        return self._ratio("up", 1)

    def down_ratio_fedavg(self) -> float | None:
        """Return how many times fewer bits went down than by dense FedAvg.

        FedAvg is charged 32 d for each participant and round, the run every payload bit that
        went down for whatever purpose, summed over all clients; None if nothing went down.
        """
        return self._ratio("down", 1)

    def so_far(self) -> "Ledger":
        """Return a ledger of the rows up to now; later ones do not show in it.

        It shares their memory, because rows never change once they are added.
        """
        ledger = Ledger()
        if len(self):
            ledger._keys, ledger._amounts = self._keys[: len(self)], self._amounts[: len(self)]
        ledger._sums, ledger._num_rows = self._sums.copy(), len(self)
        return ledger

    def to_parquet(self, path: str | Path) -> None:
        """Write all rows in order; the schema's metadata say what the columns mean."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(self.columns())
        note = "one row per message; *_bits are bits of that message; see fedsbc.ledger"
        table = table.replace_schema_metadata({"fedsbc.ledger": "v1", "note": note})
        pq.write_table(table, path, compression="zstd")

    @classmethod
    def from_parquet(cls, path: str | Path) -> "Ledger":
        """Read what `to_parquet` wrote.

        Raises:
            RunError: there is no such file, or it is not a ledger.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
            columns = {name: table[name].to_numpy() for name in KEYS + AMOUNTS}
            columns["kind"] = _numbers_of(columns["kind"], KINDS)
            columns["direction"] = _numbers_of(columns["direction"], DIRECTIONS)
        except (OSError, KeyError, pa.ArrowInvalid) as error:
            raise RunError(f"{path}: not a ledger that can be read ({error})") from error
        ledger = cls()
        ledger._num_rows = table.num_rows
        # One spare row: the capacity is never 0, so that doubling it makes room.
        ledger._keys = np.stack([np.append(columns[name], 0) for name in KEYS], axis=1)
        ledger._amounts = np.stack([np.append(columns[name], 0) for name in AMOUNTS], axis=1)
        ledger._sum_up()
        return ledger

    def _sum_up(self) -> None:
        """Make the sums anew from the rows."""
        kind_and_direction = tuple(self._keys[: len(self), [1, 3]].T)
        self._sums[:] = 0
        np.add.at(self._sums, kind_and_direction, _counted(self._amounts[: len(self)]))

    def _chosen(
        self,
        direction: Direction | None,
        kind: Kind | None,
        client_id: int | None,
        round: int | None,
    ) -> NDArray[np.bool_]:
        """Return which rows match, in the order in which they were added."""
        wanted = (
            round,
            None if kind is None else KINDS.index(kind),
            client_id,
            None if direction is None else DIRECTIONS.index(direction),
        )
        chosen = np.ones(len(self), np.bool_)
        for column, value in enumerate(wanted):
            if value is not None:
                chosen &= self._keys[: len(self), column] == value
        return chosen

    def _ratio(self, direction: Direction, steps_per_exchange: float) -> float | None:
        """Return dense bits of the training messages times the steps, over all payload bits."""
        sent_bits = self.totals(direction).payload_bits
        dense_bits = self.totals(direction, kind="train").dense_bits
        return dense_bits * steps_per_exchange / sent_bits if sent_bits else None


def _counted(amounts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Put a column of ones, the number of messages, before the amounts of each row."""
    return np.insert(amounts, 0, 1, axis=1)


def _totals(counted: NDArray[np.int64]) -> Totals:
    """Sum an array of shape (..., 1 + len(AMOUNTS)) over all axes but the last."""
    return Totals(*counted.reshape(-1, 1 + len(AMOUNTS)).sum(axis=0).tolist())


def _index(name: str | None, known: tuple[str, ...]) -> int | slice:
    """Return where a name stands among the known ones; everywhere, if there is no name."""
    return slice(None) if name is None else known.index(name)


def _numbers_of(names: NDArray[Any], known: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the index of each name among the known ones, shape (rows,)."""
    number = {name: index for index, name in enumerate(known)}
    return np.array([number[name] for name in names], np.int64)
