import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedsbc.coding.formulas import rice_parameters
from fedsbc.coding.positions import (
    Coding,
    choose,
    code_of,
    coded_bits,
    coding_ids,
    from_gaps,
    gaps,
    parameters,
)
from fedsbc.coding.sampling import sample_positions

SETS = st.lists(
    st.integers(0, 60)
    .flatmap(lambda size: st.tuples(st.just(size), st.sets(st.integers(0, max(size - 1, 0)))))
    .map(lambda pair: (pair[0], sorted(pair[1]) if pair[0] else [])),
    max_size=8,
)


def laid_out(tensors: list[tuple[int, list[int]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    positions = np.array([p for _, found in tensors for p in found], np.int64)
    counts = np.array([len(found) for _, found in tensors], np.int64)
    return positions, counts, np.array([size for size, _ in tensors], np.int64)


@given(SETS)
def test_gaps_and_back(tensors: list[tuple[int, list[int]]]) -> None:
    positions, counts, _ = laid_out(tensors)
    symbols = gaps(positions, counts)
    assert (symbols >= 0).all()
    assert from_gaps(symbols.astype(np.uint32), counts).tolist() == positions.tolist()


@given(SETS)
@example([(37, [*range(13), 33])])  # a bitmap, though Rice with parameter 0 would be shorter still
def test_the_shortest_coding_is_chosen(tensors: list[tuple[int, list[int]]]) -> None:
    positions, counts, sizes = laid_out(tensors)
    symbols = gaps(positions, counts).astype(np.uint32)
    codes = choose(symbols, counts, sizes)
    bits = coded_bits(symbols, counts, sizes, codes)
    for coding in (Coding.RICE, Coding.BITMAP):
        rice = rice_parameters(counts / np.maximum(sizes, 1))  # that of the density, and no other
        others = rice if coding is Coding.RICE else np.full(len(codes), code_of(coding))
        filled = counts > 0
        assert (bits <= coded_bits(symbols, counts, sizes, others.astype(np.uint8)))[filled].all()
    assert (codes[counts == 0] == 0).all()
    assert (bits[counts == sizes] == 0).all()


def test_unsorted_positions_show_in_the_gaps() -> None:
    assert gaps(np.array([3, 3]), np.array([2])).tolist() == [3, -1]
    assert gaps(np.array([3, 1]), np.array([1, 1])).tolist() == [3, 1]


def test_wire_bytes() -> None:
    codes = np.array([code_of(Coding.RICE, 9), code_of(Coding.BITMAP), code_of(Coding.ALL)])
    assert codes.tolist() == [9, 32, 64]
    assert coding_ids(codes).tolist() == [0, 1, 2]
    assert parameters(codes).tolist() == [9, 0, 0]


@pytest.mark.parametrize(
    ("size", "count"), [(0, 0), (1, 1), (10, 3), (10, 9), (10, 10), (999, 500)]
)
def test_a_sample_is_a_set(size: int, count: int) -> None:
    drawn = sample_positions(2**64 - 1, 4, size, count)
    assert len(set(drawn.tolist())) == count
    assert drawn.tolist() == sorted(drawn.tolist())
    assert all(0 <= position < size for position in drawn)
    assert drawn.dtype == np.int64


def test_samples_never_change() -> None:
    assert sample_positions(0, 0, 1000, 5).tolist() == SAMPLE_OF_SEED_0
    assert sample_positions(0, 1, 1000, 5).tolist() == SAMPLE_OF_TENSOR_1
    assert sample_positions(0, 0, 10, 7).tolist() == SAMPLE_OF_MORE_THAN_HALF


SAMPLE_OF_SEED_0 = [387, 652, 656, 701, 787]
SAMPLE_OF_TENSOR_1 = [150, 215, 276, 416, 879]
SAMPLE_OF_MORE_THAN_HALF = [0, 1, 2, 4, 5, 8, 9]


def test_samples_are_uniform() -> None:
    """Each of 20 entries is drawn 0.3 x 4000 times, give or take 6 standard deviations."""
    for count in (6, 14):
        hits = np.zeros(20, np.int64)
        for seed in range(4000):
            hits[sample_positions(seed, 0, 20, count)] += 1
        share = count / 20
        deviation = np.sqrt(4000 * share * (1 - share))
        assert (abs(hits - 4000 * share) < 6 * deviation).all()
