import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsbc.coding import rice
from fedsbc.coding.positions import from_gaps, gaps
from fedsbc.coding.rice import Runs, run_bits
from fedsbc.coding.runs import steps
from fedsbc.errors import WireError
from tests.coding.reference import fixed_run, interleaved, to_bytes, two_runs

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "positions.json").read_text())


def runs_of(lengths: list[int], parameters: list[int]) -> Runs:
    return Runs(np.array(lengths, np.int64), np.array(parameters, np.int64))


def encode_positions(positions: list[int], parameter: int) -> tuple[bytes, bytes, Runs]:
    counts = np.array([len(positions)])
    symbols = gaps(np.array(positions, np.int64), counts).astype(np.uint32)
    runs = runs_of([len(positions)], [parameter])
    return (*rice.encode(symbols, runs), runs)


@pytest.mark.parametrize("vector", GOLDEN["vectors"], ids=lambda v: f"{v['positions']}-b{v['b']}")
def test_golden_positions(vector: dict) -> None:
    positions, parameter, bits = vector["positions"], vector["b"], vector["bits"]
    assert interleaved(positions, parameter) == bits
    assert to_bytes(bits).hex() == vector["hex"]
    remainders, unary, runs = encode_positions(positions, parameter)
    ones_and_zeros, lows = two_runs(bits, parameter)
    assert unary == to_bytes(ones_and_zeros)
    assert remainders == to_bytes(fixed_run(lows, parameter))
    symbols = gaps(np.array(positions), runs.lengths).astype(np.uint32)
    assert run_bits(symbols, runs).tolist() == [len(bits)]


@given(
    st.sets(st.integers(0, 3000), min_size=1, max_size=60),
    st.integers(0, 12),
)
def test_length_and_bits_are_those_of_the_interleaved_code(found: set[int], parameter: int) -> None:
    positions = sorted(found)
    bits = interleaved(positions, parameter)
    remainders, unary, runs = encode_positions(positions, parameter)
    ones_and_zeros, lows = two_runs(bits, parameter)
    assert len(ones_and_zeros) + parameter * len(lows) == len(bits)
    assert unary == to_bytes(ones_and_zeros)
    assert remainders == to_bytes(fixed_run(lows, parameter))
    stops = rice.find_stops(memoryview(unary), len(positions), 4000)
    symbols = rice.decode(memoryview(remainders), steps(stops), runs, np.array([3000]))
    assert from_gaps(symbols, runs.lengths).tolist() == positions


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 31)), max_size=12), st.integers(0, 99))
def test_many_runs(shape: list[tuple[int, int]], seed: int) -> None:
    lengths, parameters = [n for n, _ in shape], [b for _, b in shape]
    runs = runs_of(lengths, parameters)
    rng = np.random.default_rng(seed)
    most = [min(10 << b, 2**32 - 1) for b in parameters]
    pieces = [rng.integers(0, top, n) for top, n in zip(most, lengths, strict=True)]
    symbols = np.concatenate([*pieces, np.zeros(0, np.int64)]).astype(np.uint32)
    remainders, unary = rice.encode(symbols, runs)
    assert len(remainders) == runs.remainder_bytes
    stops = rice.find_stops(memoryview(unary), runs.total, 10_000)
    decoded = rice.decode(memoryview(remainders), steps(stops), runs, np.array(most, np.int64))
    assert (decoded == symbols).all()


def find(bits: str, count: int, max_bits: int = 64) -> np.ndarray:
    return rice.find_stops(memoryview(to_bytes(bits)), count, max_bits)


def test_unary_code_is_read_strictly() -> None:
    assert find("1100", 2).tolist() == [2, 3]
    for bits, count in (
        ("1100", 9),  # too few ends
        ("11010010", 2),  # padding with a one
        ("1100" + "0" * 8, 2),  # a byte too many
        ("1" * 8, 0),
        ("0" * 8, 0),
        ("", 1),
    ):
        with pytest.raises(WireError):
            find(bits, count)
    with pytest.raises(WireError, match="possible"):
        find("1" * 80 + "0", 1)


def test_a_number_beyond_the_tensor_is_refused_before_it_overflows() -> None:
    stops = find("1" * 60 + "0", 1)
    remainders = memoryview(bytes(4))
    with pytest.raises(WireError, match="larger"):
        rice.decode(remainders, steps(stops), runs_of([1], [31]), np.array([2**32 - 1]))
