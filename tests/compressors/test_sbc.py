"""SBC against the golden vectors: small inputs worked by hand, and random ones."""

import json
from pathlib import Path

import numpy as np
import pytest

from fedsbc.compressors import make
from fedsbc.compressors.sbc import SbcOptions, binarize
from fedsbc.compressors.sums import Sum
from fedsbc.layout import Layout
from fedsbc.selection import num_to_keep

CASES = json.loads((Path(__file__).parents[1] / "golden" / "sbc.json").read_text())["cases"]
LAYOUT = Layout.of([("a", (2, 3)), ("b", ()), ("empty", (0,)), ("c", (4,))])
VECTOR = np.array([1, -2, 3, -4, 5, -6, 0.5, 9, 0, -1, 8], np.float32)


def compress(vector, layout, **options):
    compressor = make(SbcOptions(**options))
    update, state = compressor.compress(vector, layout, {}, np.random.default_rng(0))
    assert state == {}
    return update


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"n{len(case['vector'])}k{case['k']}")
def test_golden(case):
    vector = np.array(case["vector"], np.float32)
    assert num_to_keep(case["density"], len(vector)) == case["k"]
    chosen, mean = binarize(Sum.of(vector), case["k"])
    assert chosen.positions.tolist() == case["positions"]
    assert chosen.positions.dtype == np.int64
    assert mean.tobytes() == np.float32(case["mean"]).tobytes()


def test_scope_tensor_selects_in_each_tensor():
    a, b, empty, c = compress(VECTOR, LAYOUT, density=0.5).blocks
    assert (a.positions.tolist(), a.mean) == ([1, 3, 5], -4)
    assert (b.positions.tolist(), b.mean) == ([0], 0.5)
    assert (empty.positions.tolist(), empty.mean) == ([], 0)
    assert (c.positions.tolist(), c.mean) == ([0, 3], 8.5)


def test_scope_model_selects_once_and_shares_the_mean():
    a, b, empty, c = compress(VECTOR, LAYOUT, density=0.3, scope="model").blocks
    assert (a.positions.tolist(), a.mean) == ([2, 4], 6.25)
    assert (b.positions.tolist(), b.mean) == ([], 0)
    assert (empty.positions.tolist(), empty.mean) == ([], 0)
    assert (c.positions.tolist(), c.mean) == ([0, 3], 6.25)


def test_the_mean_is_summed_in_index_order():
    vector = np.array([1, *[2**-53] * 1024], np.float32)
    _, mean = binarize(Sum.of(vector), len(vector))
    assert mean == np.float32(1 / 1025)


def test_ablations_of_binarisation():
    layout = Layout.single(6)
    vector = np.array([1, -2, 3, -4, 5, -6], np.float32)

    def block(values):
        return compress(vector, layout, density=0.5, values=values).blocks[0]

    floats, signs, means = block("float32"), block("signs"), block("two-means")
    assert (floats.positions.tolist(), floats.values.tolist()) == ([1, 3, 5], [-2, -4, -6])
    assert (signs.positions.tolist(), signs.negative.tolist()) == ([3, 4, 5], [True, False, True])
    assert signs.mean == 5
    assert (means.positions.tolist(), means.negative.tolist()) == ([3, 4, 5], [True, False, True])
    assert (means.positive_mean, means.negative_mean) == (5, -5)
