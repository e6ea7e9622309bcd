"""The ledger: order, sums, ratios, files."""

import itertools
import random
from pathlib import Path

import pytest

from fedsbc.errors import RunError
from fedsbc.ledger import Direction, Kind, Ledger, LedgerRow
from fedsbc.ledger_row import AMOUNTS, KINDS

NUM_PARAMS = 1000


def row(
    round: int = 1,
    client_id: int = 0,
    direction: Direction = "up",
    kind: Kind = "train",
    position_bits: int = 70,
    **changes: int,
) -> LedgerRow:
    parts = {"value_bits": 32, "header_bits": 24, "padding_bits": 2} | changes
    return LedgerRow(
        round=round,
        client_id=client_id,
        direction=direction,
        kind=kind,
        num_kept=10,
        position_bits=position_bits,
        payload_bits=position_bits + sum(parts.values()),
        envelope_bits=400,
        dense_bits=32 * NUM_PARAMS,
        **parts,
    )


def many_rows() -> list[LedgerRow]:
    every = itertools.product((1, 2, 3), (4, 0, 11), ("up", "down"), KINDS)
    return [row(r, c, d, k, position_bits=7 * r + c) for r, c, d, k in every]  # type: ignore[arg-type]


def test_payload_bits_must_be_the_sum_of_the_four_parts() -> None:
    good = row()
    with pytest.raises(AssertionError, match="sum of its parts"):
        LedgerRow(**{**vars(good), "padding_bits": good.padding_bits + 1})


def test_negative_bits_are_refused() -> None:
    with pytest.raises(AssertionError, match="negative"):
        row(padding_bits=-1)


def test_rows_do_not_show_the_order_of_arrival() -> None:
    # Two messages with the same key and different sizes: a reply that came twice.
    rows = [*many_rows(), row(2, 4, "up", "train", 900), row(2, 4, "up", "train", 800)]
    expected = Ledger(rows).rows
    for seed in range(5):
        shuffled = random.Random(seed).sample(rows, len(rows))
        assert Ledger(shuffled).rows == expected
    keys = [(r.round, KINDS.index(r.kind), r.client_id, r.direction) for r in expected]
    assert keys == sorted(keys)
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"direction": "up"},
        {"direction": "down", "round": 2},
        {"client_id": 4},
        {"kind": "hello", "client_id": 0, "direction": "up", "round": 3},
        {"round": 99},
    ],
)
def test_totals_sum_the_rows_that_match(choice: dict[str, object]) -> None:
    rows = many_rows()
    chosen = [r for r in rows if all(getattr(r, key) == value for key, value in choice.items())]
    totals = Ledger(rows).totals(**choice)  # type: ignore[arg-type]
    assert totals.num_messages == len(chosen)
    for name in AMOUNTS:
        assert getattr(totals, name) == sum(getattr(r, name) for r in chosen)


def test_totals_by_client_add_up_to_the_total_of_each_direction() -> None:
    ledger = Ledger(many_rows())
    for direction in ("up", "down", None):
        per_client = ledger.totals_by_client(direction)  # type: ignore[arg-type]
        assert list(per_client) == [0, 4, 11]
        for client_id, totals in per_client.items():
            assert totals == ledger.totals(direction, client_id=client_id)  # type: ignore[arg-type]
    assert Ledger().totals_by_client() == {}


def test_ratios_against_dense_at_every_exchange_and_at_every_step() -> None:
    ledger = Ledger()
    ledger.add(row(0, kind="hello", position_bits=0, value_bits=0, header_bits=0, padding_bits=0))
    for client_id in range(4):  # 128 bits up each; what goes down is 100 x that
        ledger.add(row(1, client_id, "up"))
        ledger.add(row(1, client_id, "down", position_bits=12_742))
    assert ledger.up_ratio_fedavg() == 32_000 / 128
    assert ledger.up_ratio_dsgd(local_steps=10) == 10 * 32_000 / 128
    assert ledger.down_ratio_fedavg() == 32_000 / 12_800
    totals = ledger.run_totals()
    assert (totals.up.payload_bits, totals.down.payload_bits) == (512, 51_200)
    assert (totals.up_ratio_fedavg, totals.down_ratio_fedavg) == (250.0, 2.5)


def test_bits_of_every_kind_are_charged_but_only_training_is_the_reference() -> None:
    ledger = Ledger([row(1, 0, "down"), row(1, 1, "down", "evaluate"), row(2, 0, "down", "sync")])
    assert ledger.down_ratio_fedavg() == 32_000 / (3 * 128)


def test_a_ratio_is_none_where_nothing_was_sent() -> None:
    assert Ledger().up_ratio_fedavg() is None
    assert Ledger().up_ratio_dsgd(10) is None


@pytest.mark.parametrize("num_early", [0, 7])
def test_later_rows_do_not_show_in_the_ledger_so_far(num_early: int) -> None:
    rows = many_rows()
    ledger = Ledger(rows[:num_early])
    early = ledger.so_far()
    for late in rows[num_early:]:
        ledger.add(late)
    assert ledger.rows == Ledger(rows).rows
    assert early.rows == Ledger(rows[:num_early]).rows
    assert early.run_totals() == Ledger(rows[:num_early]).run_totals()
    for late in rows[num_early:][::-1]:
        early.add(late)
    assert early.rows == ledger.rows == Ledger(rows).rows


@pytest.mark.parametrize("rows", [[], many_rows()], ids=["empty", "full"])
def test_parquet_keeps_every_row_and_can_be_added_to(rows: list[LedgerRow], tmp_path: Path) -> None:
    path = tmp_path / "ledger.parquet"
    Ledger(rows).to_parquet(path)
    again = Ledger.from_parquet(path)
    assert again.rows == Ledger(rows).rows
    assert again.run_totals() == Ledger(rows).run_totals()
    for client_id in range(100, 200):
        again.add(row(9, client_id))
    assert len(again) == len(rows) + 100
    assert again.rows[-100:] == [row(9, client_id) for client_id in range(100, 200)]


def test_parquet_is_the_same_bytes_whatever_the_order_of_arrival(tmp_path: Path) -> None:
    rows = many_rows()
    Ledger(rows).to_parquet(tmp_path / "a")
    Ledger(rows[::-1]).to_parquet(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_that_is_no_ledger_is_one_clear_error(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = tmp_path / "text.parquet"
    text.write_text("not parquet")
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1]}), other)
    for path in (text, other, tmp_path / "missing.parquet"):
        with pytest.raises(RunError, match=path.name):
            Ledger.from_parquet(path)
