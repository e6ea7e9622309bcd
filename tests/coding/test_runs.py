from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsbc.coding import runs
from fedsbc.coding.runs import fixed_bytes, pack_fixed, pack_flags, unpack_fixed, unpack_flags
from fedsbc.errors import WireError
from tests.coding.reference import fixed_run, to_bytes

# Numbers are packed bit by bit where they are few, and in words where they are many.
PATHS = pytest.mark.parametrize("few", [runs.FEW, -1])


@PATHS
@given(st.integers(0, 32), st.integers(0, 40), st.integers(0, 999))
def test_numbers_of_every_width(few: int, width: int, count: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 1 << width, count)
    with patch.object(runs, "FEW", few):
        data = pack_fixed(values.astype(np.uint32), width)
        assert unpack_fixed(memoryview(data), count, width).tolist() == values.tolist()
    assert data == to_bytes(fixed_run(values.tolist(), width))
    assert len(data) == fixed_bytes(count, width)


@pytest.mark.parametrize("count", [runs.FEW, runs.FEW + 1])
def test_few_and_many_numbers_are_packed_alike(count: int) -> None:
    values = np.random.default_rng(count).integers(0, 64, count).astype(np.uint32)
    data = pack_fixed(values, 6)
    assert data == to_bytes(fixed_run(values.tolist(), 6))
    assert (unpack_fixed(memoryview(data), count, 6) == values).all()


def test_higher_bits_are_left_out() -> None:
    assert pack_fixed(np.array([0b10101, 0b1], np.uint32), 3) == bytes([0b101_001_00])


@PATHS
@pytest.mark.parametrize("count", [1, 3, 7, 9])
def test_padding_of_numbers_must_be_zero(few: int, count: int) -> None:
    data = bytearray(pack_fixed(np.ones(count, np.uint32), 3))
    data[-1] |= 1
    with patch.object(runs, "FEW", few), pytest.raises(WireError, match="padding"):
        unpack_fixed(memoryview(data), count, 3)


@given(st.lists(st.booleans(), max_size=40))
def test_flags(flags: list[bool]) -> None:
    data = pack_flags(np.array(flags, np.bool_))
    assert data == to_bytes("".join("01"[flag] for flag in flags))
    assert unpack_flags(memoryview(data), len(flags)).tolist() == flags


def test_padding_of_flags_must_be_zero() -> None:
    with pytest.raises(WireError, match="padding"):
        unpack_flags(memoryview(bytes([0b1010_0001])), 4)
