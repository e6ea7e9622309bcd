"""The formulas, against the papers' figures and against what payloads measure."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedsbc import bits, compressors
from fedsbc.layout import Layout
from fedsbc.payload import PayloadBits, encode, measure
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
    TwoMeanBlock,
    Update,
)

EXPECTED = json.loads((Path(__file__).parent / "golden" / "positions.json").read_text())
F32 = np.float32


def random_positions(density: float, count: int, seed: int = 0) -> tuple[np.ndarray, int]:
    """Return positions of independent entries, and the size of the tensor that they end in."""
    gaps = np.random.default_rng(seed).geometric(density, count)
    positions = np.cumsum(gaps) - 1
    return positions, int(positions[-1]) + 1


def measured(block: Block) -> PayloadBits:
    layout = Layout.single(block.size)
    return measure(encode(Update(layout, [block])), layout)


@pytest.mark.parametrize("row", EXPECTED["expected_bits_per_position"], ids=lambda r: r["density"])
def test_parameter_and_bits_of_the_paper(row: dict) -> None:
    assert bits.rice_parameter(row["density"]) == row["b"]
    assert bits.rice_bits_per_position(row["density"]) == pytest.approx(row["bits"], abs=5e-5)


@pytest.mark.parametrize(("density", "expected"), [(0.01, 8.108), (0.001, 11.495)])
def test_measured_bits_per_position(density: float, expected: float) -> None:
    """Within 0.1 % on uniformly random positions, and so is the whole payload at this size."""
    positions, size = random_positions(density, 200_000)
    found = measured(SparseMeanBlock(size, positions, F32(1)))
    assert found.position_bits / found.num_kept == pytest.approx(expected, rel=1e-3)
    assert found.payload_bits / found.num_kept == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("density", [0.5, 0.1, 0.05, 0.02, 0.005, 0.0025, 0.0001])
def test_formula_and_measurement_agree(density: float) -> None:
    positions, size = random_positions(density, 100_000, seed=1)
    found = measured(SparseMeanBlock(size, positions, F32(1)))
    assert found.position_bits == pytest.approx(bits.position_bits(size, 100_000), rel=2e-3)


def test_the_best_parameter_is_that_of_the_formula() -> None:
    for density in np.geomspace(1e-5, 0.6, 60):
        parameter = bits.rice_parameter(density)

        def expected(b: int, p: float = density) -> float:
            return b + 1 / (1 - (1 - p) ** 2**b)

        best = min(expected(b) for b in range(25))
        assert expected(parameter) == pytest.approx(best, rel=1e-9)


def test_bounds_are_below_the_code() -> None:
    for density in (0.1, 0.01, 0.001):
        bound = bits.entropy_bits_per_position(density)
        assert bound < bits.rice_bits_per_position(density) < 1.015 * bound
    assert bits.subset_bits(431_080, 4311) / 4311 == pytest.approx(8.0779, abs=1e-3)
    assert bits.subset_bits(25_557_032, 25_558) / 25_558 == pytest.approx(11.4074, abs=1e-3)
    assert bits.subset_bits(10, 0) == bits.subset_bits(10, 10) == pytest.approx(0, abs=1e-9)
    assert bits.entropy_bits(0) == bits.entropy_bits(1) == 0


def test_rates_of_the_papers_configurations() -> None:
    rates = [bits.compression_rate(*pair) for pair in ((0.001, 1), (0.01, 10), (0.01, 100))]
    assert [round(rate) for rate in rates] == [2784, 3947, 39468]
    assert 32 * 1e6 / bits.dgc_table_bits(1000) == pytest.approx(666.7, abs=0.1)
    ratio = (bits.entropy_bits(0.01) + 32 * 0.01) / (bits.entropy_bits(0.01) + 0.01)
    assert ratio == pytest.approx(4.414, abs=1e-3)
    for density, rate in ((1 / 25, 112.9), (1 / 100, 351), (1 / 400, 1152)):
        size = 1_000_000_000
        stc = bits.stc_bits(size, round(density * size))
        assert bits.none_bits(size) / stc == pytest.approx(rate, rel=1e-3)


POSITIONS, SIZE = random_positions(0.01, 20_000, seed=2)
KEPT = len(POSITIONS)
VALUES = np.random.default_rng(3).normal(size=KEPT).astype(np.float32)
NEGATIVE = VALUES < 0
DENSE = np.random.default_rng(4).normal(size=SIZE).astype(np.float32)
SCHEMES: dict[str, tuple[Block, float]] = {
    "none": (DenseBlock(DENSE), bits.none_bits(SIZE)),
    "fp16": (HalfBlock(DENSE.astype(np.float16)), bits.fp16_bits(SIZE)),
    "sbc": (SparseMeanBlock(SIZE, POSITIONS, F32(-1)), bits.sbc_bits(SIZE, KEPT)),
    "stc": (SparseSignBlock(SIZE, POSITIONS, NEGATIVE, F32(1)), bits.stc_bits(SIZE, KEPT)),
    "topk": (SparseFloatBlock(SIZE, POSITIONS, VALUES), bits.topk_bits(SIZE, KEPT)),
    "gaussiank": (SparseFloatBlock(SIZE, POSITIONS, VALUES), bits.gaussiank_bits(SIZE, KEPT)),
    "dgc": (SparseFloatBlock(SIZE, POSITIONS, VALUES), bits.dgc_bits(SIZE, KEPT)),
    "randomk": (SeededBlock(SIZE, 1, 0, VALUES), bits.randomk_bits(KEPT) + bits.SEED_BITS),
    "signsgd": (SignBlock(DENSE < 0, F32(1)), bits.signsgd_bits(SIZE)),
    "onebit": (TwoMeanBlock(DENSE < 0, F32(1), F32(-1)), bits.onebit_bits(SIZE)),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_payload_of_each_scheme(scheme: str) -> None:
    block, expected = SCHEMES[scheme]
    found = measured(block)
    exact = scheme in ("none", "fp16", "randomk", "signsgd", "onebit")
    data_bits = found.position_bits + found.value_bits
    assert data_bits == (expected if exact else pytest.approx(expected, rel=2e-3))


@pytest.mark.parametrize("spread", [0.1, 0.5, 1.5, 40.0])
def test_payload_of_quantised_levels(spread: float) -> None:
    size = 100_000
    levels = np.round(np.random.default_rng(5).normal(size=size) * spread).astype(np.int16)
    probabilities = np.bincount(abs(levels)) / size
    block = QuantisedBlock(levels, np.ones(-(-size // 512), np.float32), 512)
    found = measured(block)
    expected = bits.qsgd_bits(size, probabilities, len(block.scales))
    assert found.position_bits + found.value_bits == pytest.approx(expected, rel=5e-3)


def test_payload_of_ternary_levels() -> None:
    levels = np.zeros(SIZE, np.int16)
    levels[POSITIONS] = np.where(NEGATIVE, -1, 1)
    found = measured(QuantisedBlock(levels, np.ones(1, np.float32)))
    expected = bits.terngrad_bits(SIZE, KEPT)
    assert found.position_bits + found.value_bits == pytest.approx(expected, rel=2e-3)
    assert expected < bits.terngrad_table_bits(SIZE) == math.log2(3) * SIZE + 32


def test_downloads_after_missed_rounds() -> None:
    assert bits.signsgd_download_bits(100, 1) == 100 * math.log2(3)
    assert bits.stc_download_bits(100, 3, 50) == 150
    assert bits.stc_download_bits(100, 300, 50) == bits.none_bits(100)
    assert bits.qsgd_bound_bits(1000) == 2832
    assert bits.qsgd_bits(10, np.array([1.0]), 2) == 64
    assert bits.position_bits(10, 0) == bits.position_bits(10, 10) == 0


def _of_levels(update: Update) -> float:
    (block,) = update.blocks
    assert isinstance(block, QuantisedBlock)
    probabilities = np.bincount(abs(block.levels)) / block.size
    return bits.qsgd_bits(block.size, probabilities, len(block.scales))


def _of_kept(formula: Callable[[int, int], float]) -> Callable[[Update], float]:
    return lambda update: formula(update.size, update.num_kept)


def _of_size(formula: Callable[[int], float]) -> Callable[[Update], float]:
    return lambda update: formula(update.size)


FORMULAS: dict[str, Callable[[Update], float]] = {
    "dgc": _of_kept(bits.dgc_bits),
    "ef-signsgd": _of_size(bits.signsgd_bits),
    "gaussiank": _of_kept(bits.gaussiank_bits),
    "gradient-dropping": _of_kept(bits.topk_bits),
    "none": _of_size(bits.none_bits),
    "onebit": _of_size(bits.onebit_bits),
    "qsgd": _of_levels,
    "randomk": lambda update: bits.randomk_bits(update.num_kept) + bits.SEED_BITS,
    "sbc": _of_kept(bits.sbc_bits),
    "signsgd": _of_size(bits.signsgd_bits),
    "stc": _of_kept(bits.stc_bits),
    "terngrad": _of_kept(bits.terngrad_bits),
    "threshold-search": _of_kept(bits.topk_bits),
    "topk": _of_kept(bits.topk_bits),
    "trimmed-topk": _of_kept(bits.topk_bits),
}


@pytest.mark.parametrize("name", compressors.names())
def test_every_scheme_has_a_formula_that_its_payloads_follow(name: str) -> None:
    """Within 1 % on a random vector of 120,000 entries."""
    kind = compressors.options_for(name)
    given = {"density": 0.02} if "density" in kind.model_fields else {}
    compressor = compressors.make(kind(name=name, **given))
    layout = Layout.of([("weight", (300, 400))])
    vector = np.random.default_rng(8).normal(size=layout.size).astype(np.float32)
    state, generator = compressor.init_state(layout), np.random.default_rng(9)
    update, _ = compressor.compress(vector, layout, state, generator)
    found = measure(encode(update), layout)
    assert found.num_kept == update.num_kept
    expected = FORMULAS[name](update)
    assert found.position_bits + found.value_bits == pytest.approx(expected, rel=0.01)
