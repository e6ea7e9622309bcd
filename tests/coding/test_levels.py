import numpy as np
import pytest

from fedsbc.coding import levels
from fedsbc.coding.rice import Runs, run_bits


def test_levels_of_one_cost_nothing() -> None:
    choice = levels.choose_beyond_one(np.ones(5, np.uint32), np.array([3, 0, 2]))
    assert choice.codes.tolist() == [levels.ONE << 5, 0, levels.ONE << 5]
    assert choice.bits.tolist() == [0, 0, 0]
    assert levels.num_coded(choice.codes, np.array([3, 0, 2]), np.array([9, 9, 9])).tolist() == [
        0,
        0,
        0,
    ]


@pytest.mark.parametrize("scale", [0.4, 3.0, 100.0, 9000.0])
def test_parameter_follows_the_mean_level(scale: float) -> None:
    """The chosen parameter is within 3 % of the best, and its unary part within its bound."""
    rng = np.random.default_rng(5)
    every = np.minimum(np.abs(rng.normal(size=4000) * scale).round(), 32767).astype(np.uint32)
    kept, sizes = np.array([np.count_nonzero(every)]), np.array([4000])
    beside = levels.choose_beyond_one(every[every > 0], kept)
    alone = levels.choose_with_zeros(every[every > 0], kept, sizes)
    for choice, symbols in ((beside, every[every > 0] - np.uint32(1)), (alone, every)):
        count = np.array([len(symbols)])
        best = min(
            int(run_bits(symbols, Runs(count, np.array([b])))[0])
            for b in range(levels.MAX_PARAMETER + 1)
        )
        assert choice.bits[0] <= 1.03 * best
        parameter = int(choice.codes[0]) & 31
        unary_bits = choice.bits[0] - parameter * count[0]
        assert unary_bits <= levels.MAX_UNARY_BITS * count[0]
        assert levels.is_known(choice.codes).all()


def test_unknown_codes() -> None:
    codes = np.array([0, 15, 16, 32, 33, 64, 79, 80, 96, 255], np.uint8)
    known = [True, True, False, True, False, True, True, False, False, False]
    assert levels.is_known(codes).tolist() == known
