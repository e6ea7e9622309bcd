"""Rounds over an in-process Grid: the real ClientApp, every byte real."""

from collections import defaultdict

import numpy as np
import pytest
import torch
from flwr.app import Message

from fedsbc.data import load, partition
from fedsbc.errors import RunError
from fedsbc.experiment import upstream_compressor
from fedsbc.message import ARRAYS, FIELDS
from fedsbc.payload import decode
from fedsbc.seeds import Stream, generator
from fedsbc.state_files import FileHome
from fedsbc.training import Trainer
from fedsbc.training.batches import batches
from tests.experiments import Notes, initial, play, small
from tests.local_grid import FIRST_NODE, LocalGrid, SharingGrid


def rows(strategy):
    return strategy.outcome.ledger.rows


def client_of(message: Message) -> int:
    return message.metadata.dst_node_id - FIRST_NODE


def test_order_of_arrival_and_the_home_of_states_change_nothing(tmp_path):
    config = small("participation=0.5")
    runs = [
        play(config, LocalGrid(config)),
        play(config, LocalGrid(config, order=1)),
        play(config, LocalGrid(config, tmp_path / "a", order=2)),
        play(config, SharingGrid(config, tmp_path / "b", order=3)),
    ]
    hashes = {run.outcome.server.model_hash() for run in runs}
    assert len(hashes) == 1
    assert all(rows(run) == rows(runs[0]) for run in runs)


def test_the_ledger_counts_the_bytes_that_travelled():
    config = small("participation=0.5")
    grid = LocalGrid(config)
    strategy = play(config, grid)
    for direction, contents in (("up", grid.received_content), ("down", grid.sent_content)):
        records = [c[ARRAYS] for c in contents if ARRAYS in c]
        travelled = sum(len(array.data) for record in records for array in record.values())
        assert strategy.outcome.ledger.totals(direction).payload_bits == 8 * travelled
        envelopes = sum(
            len(name) + record.count_bytes() for c in contents for name, record in c.items()
        )
        assert strategy.outcome.ledger.totals(direction).envelope_bits == 8 * envelopes


def run_with_deltas(config, tmp_path, **options):
    deltas, states = tmp_path / "deltas", tmp_path / "states"
    deltas.mkdir()
    notes = Notes()
    grid = LocalGrid(config, states, node_config={"record-dir": str(deltas)}, **options)
    strategy = play(config, grid, notes)
    summed = defaultdict(lambda: np.zeros(strategy.outcome.server.layout.size))
    for path in deltas.iterdir():
        summed[int(path.name.split("-")[1])] += np.load(path).astype(np.float64)
    return strategy, notes, summed, states, grid


@pytest.mark.parametrize("scheme", ["sbc", "topk"])
@pytest.mark.parametrize("scope", ["tensor", "model"])
def test_what_was_sent_plus_the_residual_is_the_sum_of_changes(tmp_path, scheme, scope):
    # pitfall 14
    config = small(
        f"upstream.name={scheme}", f"upstream.scope={scope}", "rounds=20", "participation=0.5"
    )
    strategy, notes, summed, states, _ = run_with_deltas(config, tmp_path)
    layout = strategy.outcome.server.layout
    run_id = next(iter(FileHomes(states)))
    assert len(summed) == 8
    for client, total in summed.items():
        sent = np.zeros(layout.size)
        for name, payload in notes.payloads.items():
            if name.endswith(f"up-{client:05d}"):
                sent += decode(payload, layout).to_dense()
        residual = FileHome(states, run_id, client).load(10**6).arrays["residual"]
        np.testing.assert_allclose(sent + residual, total, rtol=0, atol=1e-5 * abs(total).max())
        assert abs(residual).max() > 0


class FileHomes:
    """The run ids that state files belong to."""

    def __init__(self, folder):
        from fedsbc.state_slot import Slot

        self._ids = {Slot(path).header()["run_id"] for path in folder.iterdir()}
        assert len(self._ids) == 1

    def __iter__(self):
        return iter(self._ids)


def parts_of(config):
    data = load(config.data)
    parts = partition.split(config.data.partition, data.y_train, 8, config.seed)
    return *data.train_tensors(), parts


def test_identity_equals_a_torch_reference_bit_for_bit():
    config = small("upstream={name: none}", "rounds=3")
    strategy = play(config, LocalGrid(config))
    model, _ = initial(config)
    trainer = Trainer(model, config.clients)
    x, y, parts = parts_of(config)
    weights = torch.from_numpy(model.weights.copy())
    for round in range(1, config.rounds + 1):
        total = torch.zeros_like(weights)
        for client in range(8):
            result = trainer.train(
                weights.numpy(), model.buffers, x, y, seed=config.seed, client_id=client,
                round=round, first_step=3 * (round - 1), rows=parts[client],
            )  # fmt: skip
            total += torch.from_numpy(result.delta)
        weights += total / 8
    assert strategy.outcome.server.weights.tobytes() == weights.numpy().tobytes()


def test_identity_equals_averaging_weights_that_torch_itself_trained():
    config = small("upstream={name: none}", "rounds=3")
    strategy = play(config, LocalGrid(config))
    model, _ = initial(config)
    x, y, parts = parts_of(config)
    flat = torch.from_numpy(model.weights)
    server = flat.clone()
    for round in range(1, config.rounds + 1):
        total = torch.zeros_like(server)
        for client in range(8):
            flat.copy_(server)
            draws = generator(config.seed, Stream.BATCHES, client, round)
            order = batches(len(parts[client]), 10, draws, join_single=False)
            for batch, _ in zip(order, range(3), strict=False):
                picked = torch.from_numpy(parts[client][batch])
                loss = torch.nn.functional.cross_entropy(model.module(x[picked]), y[picked])
                grads = torch.autograd.grad(loss, list(model.module.parameters()))
                flat.add_(torch.cat([grad.reshape(-1) for grad in grads]), alpha=-0.05)
            total += flat
        server = total / 8
    assert np.abs(strategy.outcome.server.weights - server.numpy()).max() < 1e-6


def test_a_client_that_fails_is_named_and_the_round_goes_on():
    # pitfall 7
    config = small("rounds=2")
    notes = Notes()

    def broken(message):
        return "drop-request" if client_of(message) == 2 and not is_hello(message) else None

    config = small("rounds=2", "failures.client_timeout_s=0.3")
    strategy = play(config, LocalGrid(config, fault=broken), notes)
    assert [(r, c) for r, c, _ in notes.failures] == [(1, 2), (2, 2)]
    assert "no reply within 0.3 s" in notes.failures[0][2]
    assert [r.participants for r in strategy.outcome.records] == [7, 7]
    assert [r.failures for r in strategy.outcome.records] == [1, 1]


def is_hello(message: Message) -> bool:
    return message.content[FIELDS]["kind"] == "hello"


def test_all_clients_fail_and_the_model_is_untouched():
    # pitfall 10
    config = small("failures.client_timeout_s=0.2", "failures.abort_after=2")
    notes = Notes()
    grid = LocalGrid(config, fault=lambda m: None if is_hello(m) else "drop-request")
    with pytest.raises(RunError, match="2 rounds in a row could not be used"):
        play(config, grid, notes)
    assert len(notes.records) == 2


def test_on_client_error_fail_ends_the_run():
    config = small("failures.on_client_error=fail", "failures.client_timeout_s=0.2")
    grid = LocalGrid(
        config, fault=lambda m: "drop-reply" if client_of(m) == 5 and not is_hello(m) else None
    )
    with pytest.raises(RunError, match="round 1, client 5"):
        play(config, grid)


@pytest.mark.parametrize("sharing", [False, True])
def test_lost_late_and_double_replies_lose_nothing(tmp_path, sharing):
    # pitfall 11: used + pending + residuals = sum of the changes
    config = small("rounds=25", "participation=0.5", "failures.client_timeout_s=0.05")
    draw = np.random.default_rng(0)
    fates: dict[tuple[int, int], str] = {}

    def fault(message):
        if is_hello(message):
            return None
        fate = draw.choice(["", "drop-reply", "late", "twice"], p=[0.6, 0.2, 0.1, 0.1])
        fates[client_of(message), int(message.metadata.group_id)] = str(fate)
        return str(fate) or None

    strategy, notes, summed, states, _ = run_with_deltas(config, tmp_path, fault=fault)
    layout = strategy.outcome.server.layout
    run_id = next(iter(FileHomes(states)))
    assert {"drop-reply", "late", "twice"} <= set(fates.values())
    for client, total in summed.items():
        used = np.zeros(layout.size)
        for name, payload in notes.payloads.items():
            if name.endswith(f"up-{client:05d}"):
                used += decode(payload, layout).to_dense()
        state = FileHome(states, run_id, client).load(10**6)
        kept = state.arrays["residual"].astype(np.float64)
        if fates[client, state.round] in ("drop-reply", "late"):
            kept += decode(state.arrays["pending"].tobytes(), layout).to_dense()
        np.testing.assert_allclose(used + kept, total, rtol=0, atol=1e-5 * abs(total).max())


def test_a_bad_update_is_refused_and_discarded():
    config = small("rounds=3")
    notes = Notes()

    def poison(reply):
        fields = reply.content[FIELDS]
        if fields["kind"] == "train-reply" and fields["client_id"] == 4:
            array = reply.content[ARRAYS]["update"]
            array.data = array.data[:-1]
        return reply

    strategy = play(config, LocalGrid(config, change=poison), notes)
    assert [(r, c) for r, c, _ in notes.failures] == [(1, 4), (2, 4), (3, 4)]
    assert all("refused" in reason for _, _, reason in notes.failures)
    assert [r.participants for r in strategy.outcome.records] == [7, 7, 7]


def test_two_nodes_with_one_client_id_are_refused():
    config = small()
    grid = LocalGrid(config)
    original = grid.context
    grid.context = lambda node: original(min(node, FIRST_NODE + 6))
    with pytest.raises(RunError, match="two nodes claim client 6"):
        play(config, grid)


def test_compressors_are_made_from_the_config():
    assert upstream_compressor(small()).options.name == "sbc"
