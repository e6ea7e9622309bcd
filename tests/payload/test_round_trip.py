"""Every update comes back bit for bit, from one byte string."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsbc.errors import UpdateError
from fedsbc.layout import Layout
from fedsbc.payload import decode, encode, max_payload_bytes, measure, rows
from fedsbc.payload.frame import HEADER_BYTES, unpack
from fedsbc.updates import (
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
from tests.payload.examples import DENSITIES, KINDS, SIZES, random_update

F32 = np.float32


@st.composite
def updates(draw: st.DrawFn) -> Update:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.sampled_from(SIZES), max_size=6))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    return random_update(rng, sizes, kinds, draw(st.sampled_from(DENSITIES)))


@given(updates())
@settings(max_examples=400, deadline=None)
def test_round_trip(update: Update) -> None:
    data = encode(update)
    decoded = decode(data, update.layout)
    assert decoded == update
    assert encode(decoded) == data
    assert len(data) <= max_payload_bytes(update.layout)
    assert decoded.to_dense().tobytes() == update.to_dense().tobytes()


@given(updates())
@settings(max_examples=200, deadline=None)
def test_measure_accounts_for_every_bit(update: Update) -> None:
    data = encode(update)
    bits = measure(data, update.layout)
    assert bits.payload_bits == 8 * len(data)
    assert bits.num_kept == update.num_kept
    table = unpack(data, update.layout).table
    assert bits.header_bits == 8 * (HEADER_BYTES + len(rows.to_bytes(table)))
    assert bits.header_bits <= 128 + 64 * len(update.blocks)
    assert 0 <= bits.padding_bits <= 7 * (3 + 2 * 31)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_size(kind: type) -> None:
    rng = np.random.default_rng(7)
    for size in (*SIZES, 70_000):
        for density in DENSITIES:
            update = random_update(rng, [size], [kind], density)
            assert decode(encode(update), update.layout) == update


def test_many_tensors_with_their_own_parameters() -> None:
    rng = np.random.default_rng(3)
    sizes = [int(size) for size in rng.integers(0, 5000, 161)]
    for kind in KINDS:
        update = random_update(rng, sizes, [kind], 0.02)
        assert decode(encode(update), update.layout) == update


def test_no_tensor_at_all() -> None:
    update = Update(Layout.of([]), [])
    assert len(encode(update)) == 16
    assert decode(encode(update), update.layout) == update


def test_a_value_that_all_blocks_share_travels_once() -> None:
    layout = Layout.of([("a", (100,)), ("b", (0,)), ("c", (100,)), ("d", (100,))])
    none = np.zeros(0, np.int64)

    def update(*means: float) -> Update:
        a, c, d = (SparseMeanBlock(100, np.array([1, 5]), F32(mean)) for mean in means)
        return Update(layout, [a, SparseMeanBlock(0, none, F32(0)), c, d])

    shared, own = update(-0.5, -0.5, -0.5), update(-0.5, -0.5, -0.25)
    assert measure(encode(shared), layout).value_bits == 32
    assert measure(encode(own), layout).value_bits == 3 * 32
    assert decode(encode(shared), layout) == shared


def test_bytes_memoryview_and_bytearray_are_the_same() -> None:
    update = random_update(np.random.default_rng(1), [300, 20], [SparseMeanBlock], 0.1)
    data = encode(update)
    for form in (memoryview(data), memoryview(bytearray(data)), np.frombuffer(data, np.uint8).data):
        assert decode(form, update.layout) == update


def test_a_decoded_update_does_not_hang_on_the_bytes() -> None:
    update = random_update(np.random.default_rng(1), [300, 20], list(KINDS), 0.1)
    data = bytearray(encode(update))
    decoded = decode(memoryview(data), update.layout)
    data[:] = bytes(len(data))
    assert decoded == update


POSITIONS = np.array([0, 3])
NEGATIVE = np.array([True, False])
BAD_BLOCKS = {
    "nan mean": SparseMeanBlock(9, POSITIONS, F32("nan")),
    "infinite mean": SparseMeanBlock(9, POSITIONS, F32("-inf")),
    "no mean": SparseMeanBlock(9, POSITIONS, F32(0)),
    "mean of nothing": SparseMeanBlock(9, POSITIONS[:0], F32(1)),
    "minus zero": SparseMeanBlock(9, POSITIONS[:0], F32(-0.0)),
    "negative size of a sign": SparseSignBlock(9, POSITIONS, NEGATIVE, F32(-1)),
    "positive mean below zero": SparseTwoMeanBlock(9, POSITIONS, NEGATIVE, F32(-1), F32(-1)),
    "mean of no sign": SparseTwoMeanBlock(9, POSITIONS, ~NEGATIVE & NEGATIVE, F32(1), F32(-1)),
    "nan": DenseBlock(np.array([1, np.nan], np.float32)),
    "half infinity": HalfBlock(np.array([1, np.inf], np.float16)),
    "sparse infinity": SparseFloatBlock(9, POSITIONS, np.array([1, np.inf], np.float32)),
    "seeded nan": SeededBlock(9, 1, 0, np.array([np.nan], np.float32)),
    "seed too large": SeededBlock(9, 2**64, 0, np.ones(1, np.float32)),
    "another tensor's draw": SeededBlock(9, 1, 5, np.ones(1, np.float32)),
    "scale below zero": SignBlock(NEGATIVE, F32(-1)),
    "scale of nothing": SignBlock(NEGATIVE[:0], F32(1)),
    "two means, one nan": TwoMeanBlock(NEGATIVE, F32(1), F32("nan")),
    "two means, one of nothing": TwoMeanBlock(NEGATIVE[:1], F32(1), F32(-1)),
    "nan scale": QuantisedBlock(np.array([1], np.int16), np.array([np.nan], np.float32)),
    "a scale too many": QuantisedBlock(np.array([1], np.int16), np.ones(2, np.float32)),
    "level out of range": QuantisedBlock(np.array([-32768], np.int16), np.ones(1, np.float32)),
    "odd bucket": QuantisedBlock(np.array([1], np.int16), np.ones(1, np.float32), 3),
    "unsorted": SparseMeanBlock(9, POSITIONS[::-1], F32(1)),
    "twice": SparseMeanBlock(9, np.array([3, 3]), F32(1)),
    "past the end": SparseMeanBlock(9, np.array([3, 9]), F32(1)),
    "before the start": SparseMeanBlock(9, np.array([-1, 3]), F32(1)),
}


@pytest.mark.parametrize("name", BAD_BLOCKS)
def test_what_must_not_be_sent_is_refused(name: str) -> None:
    block = BAD_BLOCKS[name]
    with pytest.raises(UpdateError):
        encode(Update(Layout.single(block.size), [block]))


def test_one_seed_for_the_whole_update() -> None:
    one = SeededBlock(9, 1, 0, np.ones(2, np.float32))
    layout = Layout.of([("a", (9,)), ("b", (9,))])
    with pytest.raises(UpdateError, match="seed"):
        encode(Update(layout, [one, replace(one, seed=2, index=1)]))
    update = Update(layout, [one, replace(one, index=1)])
    assert measure(encode(update), layout).position_bits == 64
    first, second = update.blocks
    assert first.positions.tolist() != second.positions.tolist()
