"""Blocks in memory: adding without a dense temporary, and equality bit for bit."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from fedsbc.layout import Layout
from fedsbc.updates import (
    Block,
    DenseBlock,
    HalfBlock,
    QuantisedBlock,
    SeededBlock,
    SignBlock,
    SparseFloatBlock,
    SparseMeanBlock,
    SparseSignBlock,
    SparseTwoMeanBlock,
    TwoMeanBlock,
    Update,
)
from tests.payload.examples import DENSITIES, KINDS, random_block, random_update

F32 = np.float32
POSITIONS = np.array([1, 4])
NEGATIVE = np.array([True, False])
TWO = np.array([-1.5, 2.0], np.float32)
BY_HAND: list[tuple[Block, list[float]]] = [
    (DenseBlock(TWO), [-1.5, 2.0]),
    (HalfBlock(TWO.astype(np.float16)), [-1.5, 2.0]),
    (SparseMeanBlock(5, POSITIONS, F32(-2)), [0, -2, 0, 0, -2]),
    (SparseSignBlock(5, POSITIONS, NEGATIVE, F32(2)), [0, -2, 0, 0, 2]),
    (SparseTwoMeanBlock(5, POSITIONS, NEGATIVE, F32(2), F32(-3)), [0, -3, 0, 0, 2]),
    (SparseFloatBlock(5, POSITIONS, TWO), [0, -1.5, 0, 0, 2.0]),
    (SignBlock(NEGATIVE, F32(0.5)), [-0.5, 0.5]),
    (TwoMeanBlock(NEGATIVE, F32(1), F32(-3)), [-3, 1]),
    (QuantisedBlock(np.array([3, 0, -1], np.int16), np.ones(1, F32) / 2), [1.5, 0, -0.5]),
    (QuantisedBlock(np.array([3, 0, -1], np.int16), np.array([2, 4], F32), 2), [6, 0, -4]),
]


@pytest.mark.parametrize(("block", "expected"), BY_HAND, ids=lambda v: type(v).__name__)
def test_values_by_hand(block: Block, expected: list[float]) -> None:
    update = Update(Layout.single(block.size), [block])
    assert update.to_dense().tolist() == expected
    accumulator = np.ones(block.size, np.float32)
    update.add_to(accumulator, -2.0)
    assert accumulator.tolist() == [1 - 2 * value for value in expected]


def test_seeded_values_lie_at_the_seeds_positions() -> None:
    block = SeededBlock(50, 7, 0, TWO)
    dense = Update(Layout.single(50), [block]).to_dense()
    assert dense[block.positions].tolist() == TWO.tolist()
    assert np.count_nonzero(dense) == block.num_kept == 2


@pytest.mark.parametrize("kind", KINDS)
def test_num_kept_and_scale(kind: type[Block]) -> None:
    rng = np.random.default_rng(0)
    for density in DENSITIES:
        block = random_block(rng, kind, 0, 1000, density)
        once, half = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
        block.add_to(once)
        block.add_to(half, 0.5)
        block.add_to(half, 0.5)
        np.testing.assert_allclose(half, once, rtol=1e-6)
        assert np.count_nonzero(once) <= block.num_kept <= block.size
        assert block.problem() == ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_adding_takes_no_dense_temporary(kind: type[Block], scale: float) -> None:
    """Of 4 MB that a dense float32 copy would take, adding needs less than a third."""
    size = 1_000_000
    block = random_block(np.random.default_rng(1), kind, 0, size, 0.001)
    accumulator = np.zeros(size, np.float32)
    tracemalloc.start()
    block.add_to(accumulator, scale)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_300_000


@pytest.mark.parametrize("kind", KINDS)
def test_equality_is_bit_for_bit(kind: type[Block]) -> None:
    first = random_update(np.random.default_rng(2), [30, 9], [kind], 0.5)
    again = random_update(np.random.default_rng(2), [30, 9], [kind], 0.5)
    other = random_update(np.random.default_rng(3), [30, 9], [kind], 0.5)
    assert first == again
    assert first != other
    assert first != replace(again, layout=Layout.of([("other", (30,)), ("name", (9,))]))
    assert first.blocks[0] != 3
    assert first != 3


def test_minus_zero_and_dtypes_are_different() -> None:
    zero = DenseBlock(np.zeros(2, np.float32))
    assert zero != DenseBlock(-zero.values)
    assert zero != DenseBlock(zero.values.astype(np.float64))
    assert zero != HalfBlock(zero.values.astype(np.float16))
