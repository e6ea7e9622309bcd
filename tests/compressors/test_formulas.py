"""Measured payload bits of every scheme against its formula: within 1 % plus the header."""

import numpy as np
import pytest

from fedsbc import bits, payload
from fedsbc.compressors import make, options_for
from fedsbc.layout import Layout

SIZE = 400_000
DENSITIES = [0.001, 0.0025, 0.01, 0.04, 0.1]

SPARSE = {
    "sbc": (bits.sbc_bits, {}),
    "stc": (bits.stc_bits, {}),
    "topk": (bits.topk_bits, {}),
    "gaussiank": (bits.gaussiank_bits, {}),
    "dgc": (bits.dgc_bits, {"dense_vectors": False}),
    "trimmed-topk": (bits.topk_bits, {}),
    "threshold-search": (bits.topk_bits, {}),
    "gradient-dropping": (bits.topk_bits, {"sample": 0.05}),
    "randomk": (lambda size, kept: bits.randomk_bits(kept), {}),
}
"""Formula of (size, number sent), and options, of the schemes with a density."""

WHOLE = {
    "none": bits.none_bits,
    "signsgd": bits.signsgd_bits,
    "ef-signsgd": bits.signsgd_bits,
    "onebit": bits.onebit_bits,
}
"""Formula of the size of the schemes that send every entry alike."""


def measured(**given):
    compressor = make(options_for(given["name"]).model_validate(given))
    layout = Layout.single(SIZE)
    vector = np.random.default_rng(0).standard_normal(SIZE, dtype=np.float32)
    rng = np.random.default_rng(1)
    update, _ = compressor.compress(vector, layout, compressor.init_state(layout), rng)
    return update, payload.measure(payload.encode(update), layout)


def agrees(found, expected):
    header_bits = found.header_bits + found.padding_bits
    assert header_bits <= 8 * (16 + 8 + 8) + 16, "update, block, seed, and the last bytes"
    assert found.payload_bits - header_bits == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_schemes(name, density):
    formula, options = SPARSE[name]
    update, found = measured(name=name, density=density, **options)
    assert 0.5 < update.num_kept / (density * SIZE) < 2
    agrees(found, formula(SIZE, update.num_kept))


@pytest.mark.parametrize("name", WHOLE)
def test_schemes_that_send_every_entry(name):
    agrees(measured(name=name)[1], WHOLE[name](SIZE))


def test_float16():
    agrees(measured(name="none", dtype="float16")[1], bits.fp16_bits(SIZE))


def test_terngrad():
    update, found = measured(name="terngrad")
    agrees(found, bits.terngrad_bits(SIZE, update.num_kept))
    assert found.payload_bits < bits.terngrad_table_bits(SIZE)


@pytest.mark.parametrize("levels", [1, 4, 16, 64, 255])
def test_qsgd(levels):
    update, found = measured(name="qsgd", levels=levels)
    (block,) = update.blocks
    shares = np.bincount(np.abs(block.levels)) / SIZE
    agrees(found, bits.qsgd_bits(SIZE, shares, len(block.scales)))


@pytest.mark.parametrize("values", ["float32", "signs", "two-means"])
def test_ablations_of_sbc(values):
    update, found = measured(name="sbc", density=0.01, values=values)
    extra = {"float32": 32 * 4000, "signs": 4000 + 32, "two-means": 4000 + 64}[values]
    agrees(found, bits.position_bits(SIZE, update.num_kept) + extra)
