"""A client that was away: what it is sent, what that costs, and that it then has the weights."""

from dataclasses import replace

import numpy as np
import pytest

from clients.base import full_model_bytes
from fedsbc.flat_model import model_sha256
from fedsbc.layout import Layout
from fedsbc.message import ARRAYS, FIELDS, MAX_CHAIN
from fedsbc.payload import encode
from fedsbc.state_files import FileHome
from fedsbc.updates import DenseBlock, Update
from strategies.server import NO_BITS, Sent, Server
from tests.experiments import Notes, initial, play, small
from tests.local_grid import LocalGrid, SharingGrid

SEEN = (1, 3, 7, 58)
"""Rounds of client 0: it is absent for 1, 3 and 50 rounds."""


@pytest.fixture
def trace(tmp_path):
    lines = [f"0,{round},{round}" for round in SEEN] + [f"{i},1,58" for i in range(1, 4)]
    path = tmp_path / "trace.csv"
    path.write_text("client_id,first_round,last_round\n" + "\n".join(lines) + "\n")
    return path


def absent(trace, transport, downstream):
    return small(
        "clients.count=4",
        "rounds=58",
        f"availability={{kind: trace, trace: {trace}}}",
        f"transport={transport}",
        f"downstream={downstream}",
        "evaluate.every=1",
    )


class Watched:
    """A run whose server's weights and whose client 0 are watched."""

    def __init__(self, config, grid, states):
        self.grid, self.notes = grid, Notes()
        self.server, self.client = {}, {}
        model, _ = initial(config)
        self.layout = model.layout
        self.server[0] = model_sha256(model.weights, model.buffers)
        grid._change = lambda reply: self.look(reply, states)
        self.strategy = play(config, grid, self.notes, evaluate_fn=self.note)

    def note(self, round, arrays):
        flat = np.concatenate([arrays[t.name].numpy().ravel() for t in self.layout.tensors])
        self.server[round] = model_sha256(flat, flat[:0])

    def look(self, reply, states):
        fields = reply.content[FIELDS]
        if fields["kind"] == "train-reply" and fields["client_id"] == 0:
            state = FileHome(states, fields["run_id"], 0).load(fields["round"] + 1)
            if "base" in state.arrays:
                base = state.arrays["base"]
                self.client[fields["round"]] = (state.base_version, model_sha256(base, base[:0]))
        return reply

    def rows(self, direction="down"):
        rows = self.strategy.outcome.ledger.rows
        return {
            row.round: row
            for row in rows
            if (row.client_id, row.direction, row.kind) == (0, direction, "train")
        }


@pytest.mark.parametrize(
    ("downstream", "whole"),
    [
        ("{name: none}", [1, 58]),
        ("{name: sbc, density: 0.001}", [1]),
        ("{name: topk, density: 0.02}", [1, 58]),
    ],
    ids=["lossless", "sbc", "topk"],
)
def test_pitfalls_13_28_an_absent_client_catches_up_and_pays_for_it(
    tmp_path, trace, downstream, whole
):
    states = tmp_path / "wire"
    config = absent(trace, "wire", downstream)
    wire = Watched(config, LocalGrid(config, states), states)
    expected = {round: (round - 1, wire.server[round - 1]) for round in SEEN}
    assert wire.client == expected, "the server's weights, bit for bit"

    full_bits = 8 * len(encode(dense(np.ones(wire.layout.size, np.float32), wire.layout)))
    for before, round in zip((None, *SEEN), SEEN, strict=False):
        missed_bits = sum(
            8 * len(wire.notes.payloads[f"{version}-down"])
            for version in range(before or 0, round)
            if version
        )
        is_whole = before is None or full_bits <= missed_bits
        assert is_whole == (round in whole)
        assert wire.rows()[round].payload_bits == (full_bits if is_whole else missed_bits)

    states = tmp_path / "shared"
    config = absent(trace, "shared", downstream)
    shared = Watched(config, SharingGrid(config, states), states)
    assert shared.strategy.outcome.ledger.rows == wire.strategy.outcome.ledger.rows
    assert shared.strategy.outcome.server.model_hash() == wire.server[58]
    assert sent_bytes(shared.grid) == 0, "nothing travelled"
    assert_measured(wire)


def sent_bytes(grid, client=None):
    contents = [c for c in grid.sent_content if ARRAYS in c]
    return sum(
        len(array.data)
        for content in contents
        if client is None or content[FIELDS]["client_id"] == client
        for array in content[ARRAYS].values()
    )


def assert_measured(watched):
    """The ledger says what travelled: per client, per direction and in all."""
    ledger, grid = watched.strategy.outcome.ledger, watched.grid
    for client in range(4):
        assert ledger.totals("down", client_id=client).payload_bits == 8 * sent_bytes(grid, client)
    assert ledger.totals("down").payload_bits == 8 * sent_bytes(grid)
    for direction, contents in (("down", grid.sent_content), ("up", grid.received_content)):
        envelopes = sum(len(name) + r.count_bytes() for c in contents for name, r in c.items())
        assert ledger.totals(direction).envelope_bits == 8 * envelopes


def dense(vector, layout) -> Update:
    return Update(layout, [DenseBlock(view) for view in layout.split(vector)])


def server_with(lengths: list[int], layout: Layout) -> Server:
    """A server whose versions have payloads of so many bytes."""
    from fedsbc.compressors import make, options_for

    scheme = make(options_for("none")())
    empty = Layout(())
    server = Server(layout, empty, layout.zeros(), empty.zeros(), scheme, 0)
    for version, size in enumerate(lengths, start=1):
        bits = replace(NO_BITS, value_bits=8 * size)
        server.version = version
        server.history[version] = Sent(b"x" * size, bits)
    server._forget()
    return server


def test_the_history_never_holds_as_much_as_a_full_model():
    layout = Layout.of([("a", (100,))])
    server = server_with([60] * 50, layout)
    full_bytes = server.downlink(-1).payload_bytes["full"]
    assert 400 < full_bytes <= full_model_bytes(layout)
    assert sorted(server.history) == list(range(45, 51)), "6 x 60 < full <= 7 x 60"
    for base in range(-1, 51):
        missed = 60 * (50 - base) if base >= 0 else full_bytes
        assert server.downlink(base).bits.payload_bits == 8 * min(missed, full_bytes)


def test_a_payload_as_long_as_the_model_is_not_kept():
    server = server_with([10, 5000], Layout.of([("a", (100,))]))
    assert server.history == {}
    assert server.downlink(1).content == "full"
    assert server.downlink(2).bits.payload_bits == 0, "nothing was missed"


def test_a_chain_has_a_longest_length():
    server = server_with([1] * (MAX_CHAIN + 2), Layout.of([("a", (10**5,))]))
    assert len(server.history) == MAX_CHAIN
    assert server.downlink(2).content == "payloads"
    assert len(server.downlink(2).payload_bytes) == MAX_CHAIN
    assert server.downlink(1).content == "full"


def test_a_round_that_changed_nothing_costs_nothing():
    server = server_with([60, 0, 60, 0], Layout.of([("a", (100,))]))
    assert server.downlink(0).payload_bytes == {"v1": 60, "v3": 60}
    assert server.downlink(3).payload_bytes == {}
    assert server.downlink(3).content == "payloads"
