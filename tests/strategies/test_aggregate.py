"""The sum of a cohort has one definition."""

import numpy as np
import pytest

from fedsbc.layout import Layout
from fedsbc.updates import DenseBlock, SparseMeanBlock, Update
from strategies.aggregate import BlockSum

LAYOUT = Layout.of([("a", (3,)), ("b", (2, 2))])


def dense(values) -> Update:
    vector = np.asarray(values, np.float32)
    return Update(LAYOUT, [DenseBlock(view) for view in LAYOUT.split(vector)])


def random_updates(count: int) -> dict[int, Update]:
    rng = np.random.default_rng(1)
    scale = 10.0 ** rng.integers(-6, 6, (count, 1))
    return {3 * i: dense(v) for i, v in enumerate(rng.standard_normal((count, 7)) * scale)}


def aggregate(updates, order, aggregation="mean", samples=None):
    total = BlockSum(sorted(updates), LAYOUT, aggregation)
    for client in order:
        total.settle(client, updates[client], (samples or {}).get(client, 1))
    return total.result()


def test_order_of_arrival_changes_no_bit():
    updates = random_updates(50)
    expected = aggregate(updates, sorted(updates)).tobytes()
    rng = np.random.default_rng(2)
    for _ in range(20):
        assert aggregate(updates, rng.permutation(sorted(updates))).tobytes() == expected


def test_the_sum_is_blocks_of_sixteen_in_order():
    updates = random_updates(40)
    blocks = []
    for start in (0, 16, 32):
        block = np.zeros(7, np.float32)
        for client in sorted(updates)[start : start + 16]:
            block += updates[client].to_dense()
        blocks.append(block)
    expected = ((blocks[0] + blocks[1]) + blocks[2]) / np.float32(40)
    assert aggregate(updates, sorted(updates)).tobytes() == expected.tobytes()


def test_the_mean_is_over_those_who_took_part():
    updates = {1: dense([1] * 7), 2: None, 5: dense([3] * 7)}
    assert aggregate(updates, [5, 2, 1]).tolist() == [2.0] * 7


def test_examples_weigh_by_sample_count():
    updates = {1: dense([1] * 7), 2: dense([5] * 7)}
    assert aggregate(updates, [1, 2], "examples", {1: 30, 2: 10}).tolist() == [2.0] * 7


def test_nobody_gives_none():
    assert aggregate({1: None, 2: None}, [1, 2]) is None


def test_a_cohort_without_samples_has_no_weight_and_gives_zeros():
    # pitfall 21
    updates = {1: dense([1] * 7), 2: dense([5] * 7)}
    assert aggregate(updates, [1, 2], "examples", {1: 0, 2: 0}).tolist() == [0.0] * 7


def test_vote_on_five_clients_by_hand():
    signs = [
        [1, 1, 1, -1, 1, 1, 1],
        [1, -1, 1, -1, 1, -1, 1],
        [1, -1, 1, -1, -1, 1, -1],
        [1, -1, -1, -1, -1, -1, 1],
        [1, -1, -1, 1, -1, -1, -1],
    ]
    updates = {i: dense(np.array(s) * 0.5) for i, s in enumerate(signs)}
    assert aggregate(updates, range(5), "vote").tolist() == [0.5, -0.5, 0.5, -0.5, -0.5, -0.5, 0.5]


def test_a_tied_vote_moves_nothing():
    updates = {0: dense([1] * 7), 1: dense([-1] * 7)}
    assert aggregate(updates, [0, 1], "vote").tolist() == [0.0] * 7


def test_sparse_updates_are_added_without_a_dense_one():
    blocks = [
        SparseMeanBlock(3, np.array([1]), np.float32(2)),
        SparseMeanBlock(4, np.array([0, 3]), np.float32(-1)),
    ]
    assert aggregate({0: Update(LAYOUT, blocks)}, [0]).tolist() == [0, 2, 0, -1, 0, 0, -1]


def test_a_client_is_settled_once():
    total = BlockSum([1, 2], LAYOUT, "mean")
    total.settle(1, None)
    with pytest.raises(AssertionError):
        total.settle(1, None)
