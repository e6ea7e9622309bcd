"""Measured payload bits of every scheme against its formula: within 1 % plus the header."""

import pytest

from fedsbc import bits
from tests.compressors.formulas import (
    DENSITIES,
    QSGD_LEVELS,
    SIZE,
    SPARSE,
    WHOLE,
    measured,
    qsgd_formula_bits,
)


def agrees(found, expected):
    header_bits = found.header_bits + found.padding_bits
    assert header_bits <= 8 * (16 + 8 + 8) + 16, "update, block, seed, and the last bytes"
    assert found.payload_bits - header_bits == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_schemes(name, density):
    formula, options = SPARSE[name]
    update, found = measured({"name": name, "density": density, **options})
    assert 0.5 < update.num_kept / (density * SIZE) < 2
    agrees(found, formula(SIZE, update.num_kept))


@pytest.mark.parametrize("name", WHOLE)
def test_schemes_that_send_every_entry(name):
    agrees(measured({"name": name})[1], WHOLE[name](SIZE))


def test_float16():
    agrees(measured({"name": "none", "dtype": "float16"})[1], bits.fp16_bits(SIZE))


def test_terngrad():
    update, found = measured({"name": "terngrad"})
    agrees(found, bits.terngrad_bits(SIZE, update.num_kept))
    assert found.payload_bits < bits.terngrad_table_bits(SIZE)


@pytest.mark.parametrize("levels", QSGD_LEVELS)
def test_qsgd(levels):
    update, found = measured({"name": "qsgd", "levels": levels})
    agrees(found, qsgd_formula_bits(update))


@pytest.mark.parametrize("values", ["float32", "signs", "two-means"])
def test_ablations_of_sbc(values):
    update, found = measured({"name": "sbc", "density": 0.01, "values": values})
    extra = {"float32": 32 * 4000, "signs": 4000 + 32, "two-means": 4000 + 64}[values]
    agrees(found, bits.position_bits(SIZE, update.num_kept) + extra)
