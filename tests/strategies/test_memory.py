"""What a round holds while replies come in: sums of blocks, not the cohort's updates."""

import gc
import weakref

import numpy as np
import pytest

from fedsbc.layout import Layout
from fedsbc.updates import DenseBlock, Update
from strategies import rounds
from strategies.aggregate import BLOCK_CLIENTS, BlockSum
from tests.experiments import play, small
from tests.local_grid import SharingGrid

LAYOUT = Layout.of([("a", (1000,))])
COHORT = range(10 * BLOCK_CLIENTS)


def update() -> Update:
    return Update(LAYOUT, [DenseBlock(np.ones(1000, np.float32))])


def most_alive(order) -> int:
    """Settle clients in an order and return how many updates were alive at once at most."""
    total, alive, most = BlockSum(COHORT, LAYOUT, "mean"), [], 0
    for client in order:
        one = update()
        alive.append(weakref.ref(one))
        total.settle(client, one)
        del one
        most = max(most, sum(ref() is not None for ref in alive))
    assert total.result().tolist() == [1.0] * 1000
    return most


def test_in_order_an_update_is_freed_at_once():
    assert most_alive(COHORT) == 0


def test_a_slow_client_holds_back_its_own_block_alone():
    assert most_alive([*COHORT[1:], 0]) == BLOCK_CLIENTS - 1


def test_so_many_slow_clients_hold_back_so_many_blocks():
    slow = [0, 40, 41, 100]
    assert most_alive([c for c in COHORT if c not in slow] + slow) <= 3 * (BLOCK_CLIENTS - 1)


class TricklingGrid(SharingGrid):
    """Gives one reply at a time, by client id; those of `slow` nodes come last."""

    def __init__(self, config, folder, slow=()):
        super().__init__(config, folder)
        self._slow = slow

    def pull_messages(self, message_ids):
        ready = sorted(
            self._replies,
            key=lambda m: (m.metadata.src_node_id in self._slow, m.metadata.src_node_id),
        )
        first = next((m for m in ready if m.metadata.reply_to_message_id in message_ids), None)
        self._replies = [m for m in self._replies if m is not first]
        return [] if first is None else [first]


@pytest.mark.parametrize(("slow", "bound"), [((), 1), ((7000,), 16)])
def test_a_round_of_dense_replies_holds_few_of_them(tmp_path, monkeypatch, slow, bound):
    config = small("clients.count=48", "rounds=1", "upstream={name: none}", "model.hidden=2")
    alive, most = [], []

    def watched(*args, **kwargs):
        accepted = original(*args, **kwargs)
        most.append(sum(ref() is not None for ref in alive))
        alive.append(weakref.ref(accepted.update))
        return accepted

    original = rounds.accept
    monkeypatch.setattr(rounds, "accept", watched)
    gc.disable()  # what is counted is freed by itself
    try:
        strategy = play(config, TricklingGrid(config, tmp_path, slow))
    finally:
        gc.enable()
    assert len(alive) == 48
    assert strategy.outcome.records[0].participants == 48
    assert max(most) <= bound
