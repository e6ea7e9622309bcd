"""Who can take part, from the seed and the config alone."""

import numpy as np
import pytest
from pydantic import ValidationError

from fedsbc import availability
from fedsbc.errors import DataError
from strategies.members import draw_cohort
from tests.experiments import Notes, play, small
from tests.local_grid import LocalGrid

HEADER = "client_id,first_round,last_round\n"


def build(given, seed=0, clients=6):
    options = availability.options_for(given["kind"]).model_validate(given)
    return availability.build(options, seed, clients)


def test_always():
    there = build({"kind": "always"})
    assert there.present(1) == there.present(99) == [0, 1, 2, 3, 4, 5]
    assert there.dropouts(1) == set()


def test_random_depends_on_seed_round_and_client_alone():
    given = {"kind": "random", "p": 0.3}
    few, many, other = build(given), build(given, clients=50), build(given, seed=1)
    rounds = range(1, 60)
    assert [few.present(r) for r in rounds] == [
        [c for c in many.present(r) if c < 6] for r in rounds
    ]
    assert [few.present(r) for r in rounds] != [other.present(r) for r in rounds]
    counts = np.zeros(50)
    for round in range(1, 2001):
        counts[many.present(round)] += 1
    assert abs(counts - 600).max() < 5 * np.sqrt(2000 * 0.3 * 0.7)


def test_dropouts_are_drawn_apart_from_who_is_there():
    both = build({"kind": "random", "p": 0.5, "dropout": 0.25}, clients=400)
    there, gone = set(both.present(3)), both.dropouts(3)
    assert abs(len(gone) - 100) < 5 * np.sqrt(400 * 0.25 * 0.75)
    assert abs(len(gone & there) - 50) < 5 * np.sqrt(400 * 0.125 * 0.875)


def test_a_trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + "0,1,2\n1,1,9\n0,4,4\n\n7,1,1\n")
    there = build({"kind": "trace", "trace": str(path)}, clients=2)
    assert [there.present(r) for r in range(1, 6)] == [[0, 1], [0, 1], [1], [0, 1], [1]]
    assert there.present(10) == []
    again = build({"kind": "trace", "trace": str(path), "period": 4}, clients=2)
    assert [again.present(r) for r in (1, 3, 4, 5, 7, 8)] == [
        again.present(r + 40) for r in (1, 3, 4, 1, 3, 4)
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "trace.csv:1: the columns are"),
        ("client_id,first_round\n0,1\n", "trace.csv:1: the columns are"),
        (HEADER + "0,1\n", "trace.csv:2: '0,1' is not a stretch"),
        (HEADER + "0,1,2\n0,5,4\n", "trace.csv:3: '0,5,4' is not a stretch"),
        (HEADER + "0,0,4\n", "is not a stretch"),
        (HEADER + "-1,1,4\n", "is not a stretch"),
        (HEADER + "0,1,x\n", "is not a stretch"),
        (HEADER + "0,1,4\n", "no line for client 1; expected one for each of clients 0 to 1"),
    ],
)
def test_a_trace_that_cannot_be_used_says_where(tmp_path, text, words):
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        build({"kind": "trace", "trace": str(path)}, clients=2)


def test_a_missing_trace_is_one_clear_error(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        build({"kind": "trace", "trace": str(tmp_path / "none.csv")})


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "random"},
        {"kind": "random", "p": 0.0},
        {"kind": "random", "p": 1.1},
        {"kind": "always", "dropout": 1.0},
        {"kind": "always", "p": 0.5},
        {"kind": "trace"},
        {"kind": "trace", "trace": "x", "period": 0},
    ],
)
def test_options_out_of_range_are_refused(given):
    with pytest.raises(ValidationError):
        build(given)


def test_a_cohort_is_drawn_from_those_who_are_there():
    config = small("clients.count=20", "participants=5", "availability={kind: random, p: 0.3}")
    strategy = play(config, LocalGrid(config))
    there = availability.build(config.availability, config.seed, 20)
    for record in strategy.outcome.records:
        present = there.present(record.round)
        expected = draw_cohort(present, 5, config.seed, record.round)
        assert record.participants == min(5, len(present)) == len(expected)
        asked = {
            row.client_id
            for row in strategy.outcome.ledger.rows
            if row.round == record.round and row.kind == "train"
        }
        assert asked == set(expected)
    assert any(record.participants < 5 for record in strategy.outcome.records)


def test_participation_as_a_number_and_as_a_fraction_is_the_same():
    runs = [small("participants=2", "rounds=3"), small("participation=0.25", "rounds=3")]
    hashes = [play(config, LocalGrid(config)).outcome.server.model_hash() for config in runs]
    assert hashes[0] == hashes[1]


def test_who_drops_out_is_asked_and_counted_and_trains_nothing(tmp_path):
    config = small("rounds=6", "availability={kind: always, dropout: 0.4}")
    notes, grid = Notes(), LocalGrid(config, tmp_path)
    strategy = play(config, grid, notes)
    gone = [availability.build(config.availability, 3, 8).dropouts(r) for r in range(1, 7)]
    assert [r.failures for r in strategy.outcome.records] == [len(ids) for ids in gone]
    assert [r.participants for r in strategy.outcome.records] == [8 - len(ids) for ids in gone]
    assert 0 < sum(map(len, gone)) < 48
    rows = strategy.outcome.ledger.rows
    for round, ids in enumerate(gone, start=1):
        down = [r for r in rows if (r.round, r.direction, r.kind) == (round, "down", "train")]
        up = {r.client_id for r in rows if (r.round, r.direction) == (round, "up")}
        assert len(down) == 8
        assert up == set(range(8)) - ids
    assert notes.failures == [], "they are part of the experiment"


def test_pitfall_21_a_round_in_which_nobody_is_there_changes_nothing(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + "".join(f"{i},1,2\n{i},4,5\n" for i in range(8)))
    config = small(f"availability={{kind: trace, trace: {path}}}")
    notes = Notes()
    strategy = play(config, LocalGrid(config), notes)
    assert [r.participants for r in strategy.outcome.records] == [8, 8, 0, 8, 8]
    assert notes.failures == [
        (3, None, "round aborted, the model is unchanged: no client is available")
    ]
    assert strategy.outcome.ledger.totals(round=3).num_messages == 0
