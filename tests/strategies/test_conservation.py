"""Nothing is lost and nothing counts twice: used + discarded + pending + residuals = changes."""

import numpy as np
import pytest

from fedsbc.compressors import TABLE, options_for
from tests.books import Books
from tests.experiments import small

GIVEN = {"density": 0.01}
"""Values of the options that have no default."""

CHOSEN = {"dgc": {"momentum": 0.0}}
"""DGC compresses its momentum, not the change; without momentum they are the same."""

FATES = {"drop-request": 0.03, "drop-reply": 0.2, "late": 0.05, "twice": 0.05, "refused": 0.05}


def options(name):
    """Return a scheme's options as a config has them."""
    fields = options_for(name).model_fields
    required = {key: GIVEN[key] for key, field in fields.items() if field.is_required()}
    return {"name": name, **required, **CHOSEN.get(name, {})}


def with_feedback():
    """Return the schemes that keep a residual."""
    made = {name: options_for(name).model_validate(options(name)) for name in TABLE}
    return [name for name, chosen in made.items() if chosen.error_feedback]


def unreliable(name, *overrides):
    """Return 20 clients of which 4 take part in each of 30 rounds."""
    pairs = ", ".join(f"{key}: {value}" for key, value in options(name).items())
    return small(
        f"upstream={{{pairs}}}",
        "clients.count=20",
        "participation=0.2",
        "rounds=30",
        "failures.client_timeout_s=0.02",
        *overrides,
    )


def assert_conserved(books):
    changes, forgotten = books.changes(), books.forgotten()
    assert len(changes) == 20
    for client, total in changes.items():
        found = books.used(client) + books.discarded(client) + books.pending(client)
        found += books.residual(client) + forgotten[client]
        error = np.linalg.norm(found - total) / np.linalg.norm(total)
        assert error < 1e-5, f"client {client}: {error}"


@pytest.mark.parametrize("name", with_feedback())
def test_pitfalls_11_14_lost_late_double_and_refused_replies_lose_nothing(tmp_path, name):
    books = Books(unreliable(name), tmp_path, FATES, shared=True)
    assert set(books.counts) == {"", *FATES}
    assert books.refused
    assert sum(books.pending(client).any() for client in range(20)) >= 2
    assert_conserved(books)


def test_updates_of_aborted_rounds_go_back(tmp_path):
    config = unreliable("topk", "failures.min_replies=4", "failures.abort_after=30")
    books = Books(config, tmp_path, FATES)
    participants = [record.participants for record in books.strategy.outcome.records]
    assert set(participants) == {0, 4}
    assert sum(books.pending(client).any() for client in range(20)) >= 2
    assert_conserved(books)


def test_pitfall_14_the_sum_is_what_is_tested(tmp_path):
    """The books notice an update that is counted twice, and one that is missing."""
    books = Books(unreliable("sbc"), tmp_path, FATES)
    assert_conserved(books)
    name = next(name for name in books.notes.payloads if "-up-" in name)
    payload, again = books.notes.payloads[name], name.replace("-up-", "-again-up-")
    books.notes.payloads[again] = payload
    with pytest.raises(AssertionError, match="client"):
        assert_conserved(books)
    del books.notes.payloads[name], books.notes.payloads[again]
    with pytest.raises(AssertionError, match="client"):
        assert_conserved(books)


@pytest.mark.parametrize(
    "rule", ["{absent: decay, factor: 0.5}", "{absent: drop, after: 3}"], ids=["decay", "drop"]
)
def test_what_is_forgotten_on_purpose_is_accounted_for(tmp_path, rule):
    books = Books(unreliable("topk", f"residual={rule}"), tmp_path, FATES)
    assert_conserved(books)
    told = sum(record.forgotten for record in books.strategy.outcome.records)
    assert 0 < told < books.forgotten_mass(), "replies that were lost said nothing"


def test_what_is_forgotten_is_reported(tmp_path):
    config = unreliable("topk", "residual={absent: decay, factor: 0.25}")
    books = Books(config, tmp_path, {})
    told = sum(record.forgotten for record in books.strategy.outcome.records)
    assert told == pytest.approx(books.forgotten_mass(), rel=1e-9)
    assert told > 0


def test_pitfall_12_a_residual_that_is_kept_is_the_same_bytes_as_one_that_decays_by_1(tmp_path):
    kept = Books(unreliable("sbc"), tmp_path / "a", {})
    decayed = Books(unreliable("sbc", "residual={absent: decay, factor: 1.0}"), tmp_path / "b", {})
    servers = [books.strategy.outcome.server for books in (kept, decayed)]
    assert servers[0].model_hash() == servers[1].model_hash()
    assert decayed.strategy.outcome.records[-1].forgotten == 0
