"""Updates and replies that must not be used: refused, with the id of the client."""

import numpy as np
import pytest

from fedsbc.layout import Layout
from fedsbc.message import ARRAYS, FIELDS
from fedsbc.payload import encode
from fedsbc.payload.frame import HEADER_BYTES, _checksum
from fedsbc.state_files import FileHome
from fedsbc.state_slot import Slot
from fedsbc.updates import DenseBlock, SparseMeanBlock, Update
from tests.experiments import Notes, initial, initial_hash, play, small
from tests.local_grid import LocalGrid


def replaced(client, payload_of):
    """Let one client's update be another payload."""

    def change(reply):
        fields = reply.content[FIELDS] if reply.has_content() else {"kind": ""}
        if fields["kind"] == "train-reply" and fields["client_id"] == client:
            reply.content[ARRAYS]["update"].data = payload_of(fields)
        return reply

    return change


@pytest.fixture(scope="module")
def layout():
    return initial(small())[0].layout


def dense(layout, value):
    # The encoder refuses what is not finite, so that the bytes are put in after it.
    vector = np.full(layout.size, 1.0, np.float32)
    update = Update(layout, [DenseBlock(view) for view in layout.split(vector)])
    data = encode(update)
    body = bytearray(data[HEADER_BYTES:])
    body[-4:] = np.float32(value).tobytes()
    return data[:12] + _checksum(data[:12], bytes(body)) + bytes(body)


def sparse(layout, value):
    blocks = [SparseMeanBlock(t.size, np.array([0]), np.float32(value)) for t in layout.tensors]
    return encode(Update(layout, blocks))


def other_layout(value):
    layout = Layout.of([("other", (3,))])
    return sparse(layout, value)


BAD = {
    "NaN": (lambda layout: dense(layout, np.nan), "not finite"),
    "Inf": (lambda layout: dense(layout, np.inf), "not finite"),
    "another layout": (lambda layout: other_layout(1.0), "layout"),
    "truncated": (lambda layout: sparse(layout, 1.0)[:-3], "damaged"),
    "garbage": (lambda layout: b"\x00" * 100, "does not start with"),
    "nothing": (lambda layout: b"", "shorter than its header"),
    "too long": (lambda layout: b"FS" + b"\x00" * (10 * layout.size + 10**4), "longer than"),
}


@pytest.mark.parametrize("case", BAD)
def test_pitfalls_25_30_a_bad_update_is_refused_with_its_client(tmp_path, layout, case):
    make_payload, expected = BAD[case]
    config = small("rounds=2")
    notes = Notes()
    grid = LocalGrid(config, tmp_path, change=replaced(4, lambda f: make_payload(layout)))
    strategy = play(config, grid, notes)
    assert [(round, client) for round, client, _ in notes.failures] == [(1, 4), (2, 4)]
    assert all("update refused" in r and expected in r for _, _, r in notes.failures)
    assert [(r.participants, r.failures) for r in strategy.outcome.records] == [(7, 1), (7, 1)]
    assert np.isfinite(strategy.outcome.server.weights).all()
    rows = strategy.outcome.ledger.rows
    assert sum(r.client_id == 4 and r.kind == "train" and r.direction == "up" for r in rows) == 2


FIELD_LIES = {
    "another run": ("run_id", "0" * 16, "run_id"),
    "another round": ("round", 1, "round"),
    "another client": ("client_id", 5, "client_id"),
    "an older version": ("base_version", 0, "relative to version 0"),
    "more samples": ("num_samples", 10**9, "samples"),
    "negative steps": ("num_steps", -1, "samples"),
    "NaN forgotten": ("forgotten", float("nan"), "forgotten"),
    "a wrong type": ("num_steps", 1.5, "num_steps"),
}


@pytest.mark.parametrize("case", FIELD_LIES)
def test_a_reply_must_be_the_one_that_was_asked_for(case):
    name, value, expected = FIELD_LIES[case]

    def lie(reply):
        fields = reply.content[FIELDS]
        is_second = fields["kind"] == "train-reply" and fields["round"] == 2
        if is_second and fields["client_id"] == 4:
            fields[name] = value
        return reply

    config, notes = small("rounds=3"), Notes()
    strategy = play(config, LocalGrid(config, change=lie), notes)
    ((round, client, reason),) = notes.failures
    assert (round, client) == (2, 4)
    assert expected in reason
    assert [r.participants for r in strategy.outcome.records] == [8, 7, 8]


def test_pitfall_25_a_refused_update_does_not_poison_the_residual(tmp_path, layout):
    """The client is told to throw it away; its residual is what compression left out."""
    config = small("rounds=2")
    grid = LocalGrid(config, tmp_path, change=replaced(4, lambda fields: dense(layout, np.nan)))
    play(config, grid)
    (run_id,) = {Slot(path).header()["run_id"] for path in tmp_path.glob("client-*")}
    state = FileHome(tmp_path, run_id, 4).load(3)
    assert np.isfinite(state.arrays["residual"]).all()


def test_pitfall_25_a_client_whose_training_diverges_refuses_its_own_change(tmp_path):
    config = small("clients.optimizer.lr=1e30", "rounds=1", "failures.abort_after=2")
    notes = Notes()
    strategy = play(config, LocalGrid(config, tmp_path), notes)
    assert len(notes.failures) == 9, "eight clients and the round"
    assert "not finite" in notes.failures[0][2]
    assert strategy.outcome.server.model_hash() == initial_hash(config)
    assert list(tmp_path.glob("client-*")) == [], "no state was stored"


@pytest.mark.parametrize("bound", [True, False])
def test_a_finite_but_huge_update(layout, bound):
    """With a bound on the norm it is refused; without one it is applied as any other."""
    more = ["failures.max_update_norm=100.0"] if bound else []
    config, notes = small("rounds=1", *more), Notes()
    grid = LocalGrid(config, change=replaced(4, lambda fields: sparse(layout, 3e38)))
    strategy = play(config, grid, notes)
    assert np.isfinite(strategy.outcome.server.weights).all()
    assert (abs(strategy.outcome.server.weights).max() > 1e37) != bound
    if bound:
        ((round, client, reason),) = notes.failures
        assert (round, client) == (1, 4)
        assert "above failures.max_update_norm: 100" in reason
        assert strategy.outcome.records[0].participants == 7


def test_updates_that_overflow_together_abort_the_round(layout):
    config, notes = small("rounds=1"), Notes()

    def change(reply):
        fields = reply.content[FIELDS]
        if fields["kind"] == "train-reply":
            reply.content[ARRAYS]["update"].data = sparse(layout, 3e38)
        return reply

    strategy = play(config, LocalGrid(config, change=change), notes)
    assert notes.failures == [
        (1, None, "round aborted, the model is unchanged: the aggregate is not finite")
    ]
    assert strategy.outcome.server.model_hash() == initial_hash(config)
