"""Simulated time of whole rounds: the closed form, stragglers, and clients that never answer."""

import pytest

from fedsbc.network import Link, build
from tests.books import Books
from tests.experiments import play, small
from tests.local_grid import LocalGrid
from tests.strategies.test_conservation import FATES, assert_conserved, unreliable

OWN = "profile: own, uplink_bit_s: 1e5, downlink_bit_s: 1e6, latency_s: 0.25"
SLOW_STEPS = "seconds_per_step: 0.5, coding_ns_per_entry: 1000"


def of_round(strategy, round):
    """Return {client: (bits up, bits down)} of a round."""
    bits = {}
    for row in strategy.outcome.ledger.rows:
        if row.kind == "train" and row.round == round:
            pair = bits.setdefault(row.client_id, {"up": None, "down": None})
            pair[row.direction] = row.payload_bits
    return bits


def by_hand(link: Link, up, down, steps, entries):
    """The closed form, written out once more."""
    return (
        2 * link.latency_s
        + down / link.downlink_bit_s
        + steps * link.seconds_per_step
        + entries * link.coding_ns_per_entry / 1e9
        + up / link.uplink_bit_s
    )


def test_pitfall_34_a_round_takes_as_long_as_its_slowest_participant():
    config = small("participants=4", f"network={{{OWN}, {SLOW_STEPS}, spread: {{link: 0.5}}}}")
    strategy = play(config, LocalGrid(config))
    links = build(config.network, config.seed, 8).links
    d = strategy.outcome.server.layout.size
    for record in strategy.outcome.records:
        bits = of_round(strategy, record.round)
        assert len(bits) == 4
        expected = max(by_hand(links[c], b["up"], b["down"], 3, d) for c, b in bits.items())
        assert record.simulated_s == pytest.approx(expected, rel=1e-12)


def test_a_deadline_drops_stragglers_and_loses_nothing(tmp_path):
    network = f"{{{OWN}, spread: {{link: 1.0}}, deadline_s: 1.0}}"
    config = unreliable("sbc", f"network={network}")
    books = Books(config, tmp_path, {"twice": 0.1})
    records = books.strategy.outcome.records
    assert {record.simulated_s for record in records if record.failures} == {1.0}
    assert all(record.simulated_s < 1.0 for record in records if not record.failures)
    assert 0 < sum(record.failures for record in records) < 60
    for round, client in straggled(books):
        books.fates[client, round] = "late"
    assert_conserved(books)


def straggled(books):
    """Yield (round, client) of the replies that came after the deadline."""
    accepted = {
        (int(name.split("-")[0]), int(name.rsplit("-", 1)[1]))
        for name in books.notes.payloads
        if "-up-" in name
    }
    rows = books.strategy.outcome.ledger.rows
    read = {(r.round, r.client_id) for r in rows if (r.kind, r.direction) == ("train", "up")}
    return read - accepted


def test_a_straggler_learns_that_it_was_not_used():
    """The next request goes on from the base that the server is sure of."""
    config = small("rounds=3", f"network={{{OWN}, spread: {{link: 2.0}}, deadline_s: 1.5}}")
    strategy = play(config, LocalGrid(config))
    last = strategy.outcome.records[-1]
    assert 0 < last.failures < 8
    down = {r.client_id: r.payload_bits for r in strategy.outcome.ledger.rows
            if (r.round, r.kind, r.direction) == (3, "train", "down")}  # fmt: skip
    whole = max(down.values())
    assert sum(bits == whole for bits in down.values()) >= last.failures


def test_who_never_answers_is_waited_for_until_the_deadline(tmp_path):
    given = ["rounds=4", "availability.dropout=0.3"]
    patient = small(*given, f"network={{{OWN}}}")
    strict = small(*given, f"network={{{OWN}, deadline_s: 60.0}}")
    without = play(patient, LocalGrid(patient)).outcome.records
    within = play(strict, LocalGrid(strict)).outcome.records
    assert [r.failures for r in without] == [r.failures for r in within]
    assert all(r.simulated_s < 10 for r in without), "no deadline: nobody is waited for"
    assert [r.simulated_s for r in within] == [
        60.0 if w.failures else w.simulated_s for w in without
    ]
    assert any(r.failures for r in within)


def test_lost_messages_change_no_second_of_the_others(tmp_path):
    config = unreliable("sbc", f"network={{{OWN}}}")
    records = Books(config, tmp_path, FATES).strategy.outcome.records
    assert all(0 < record.simulated_s < 10 for record in records)
