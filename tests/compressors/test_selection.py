"""Selection against a slow oracle in plain Python, on the plain path and on the fast one."""

from decimal import ROUND_CEILING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedsbc.compressors import scan, sums
from fedsbc.compressors.sbc import binarize
from fedsbc.compressors.sums import Sum
from fedsbc.errors import UpdateError
from fedsbc.selection import mean, num_to_keep, top_magnitude, top_negative, top_positive

FLOATS = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.integers(-3, 3).map(float),
    st.just(0.0),
)
SHORT = arrays(np.float32, st.integers(0, 40), elements=FLOATS, fill=st.nothing())


def drawn(seed, size, num_digits):
    """Return random entries with many ties (few digits) or none, some of them zero."""
    rng = np.random.default_rng(seed)
    return rng.standard_t(3, size).round(num_digits).astype(np.float32)


LONG = st.builds(drawn, st.integers(0, 2**32), st.integers(0, 300), st.integers(0, 9))
VECTORS = SHORT | LONG

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def oracle(keys, k):
    """Return the k largest keys above zero by sorting (value, index) pairs."""
    ranked = sorted((-key, index) for index, key in enumerate(keys) if key > 0)
    return sorted(index for _, index in ranked[:k])


def oracle_mean(values):
    total = 0.0
    for value in values:
        total += value
    return np.float32(total / len(values)) if values else np.float32(0)


@pytest.fixture(params=[1, 3])
def tiny_chunks(monkeypatch, request):
    """Let small vectors take the path of large ones: sampled, in many chunks, some at a time."""
    monkeypatch.setattr(scan, "FLAGS", 16 * request.param)
    monkeypatch.setattr(sums, "SMALL_ENTRIES", 0)
    monkeypatch.setattr(scan, "CHUNK_ENTRIES", 16)


@patient
@given(st.decimals("0.000001", 1, places=6), st.integers(0, 10**9))
def test_num_to_keep_is_exact_in_decimals(density, size):
    expected = max(1, int((density * size).to_integral_value(ROUND_CEILING))) if size else 0
    assert num_to_keep(float(density), size) == expected


@pytest.mark.parametrize(
    ("density", "size", "k"),
    [(0.07, 100, 7), (0.1, 30, 3), (0.29, 100, 29), (1e-9, 5, 1), (1.0, 7, 7), (0.5, 0, 0)],
)
def test_num_to_keep_where_floats_go_wrong(density, size, k):
    assert num_to_keep(density, size) == k


@patient
@given(VECTORS, st.integers(0, 310))
def test_plain_path_equals_the_oracle(vector, k):
    values = vector.tolist()
    assert top_positive(vector, k).positions.tolist() == oracle(values, k)
    assert top_negative(vector, k).positions.tolist() == oracle([-v for v in values], k)
    assert top_magnitude(vector, k).positions.tolist() == oracle([abs(v) for v in values], k)


def check_fast(group, k):
    plus, minus = group().top_sides(k)
    chosen = group().top_magnitudes(k)
    values = group().delta.tolist()
    if group().residual is not None:
        values = (group().delta + group().residual).tolist()
    for selected, keys in (
        (plus, values),
        (minus, [-v for v in values]),
        (chosen, [abs(v) for v in values]),
    ):
        assert selected.positions.tolist() == oracle(keys, k)
        assert selected.positions.dtype == np.int64
        assert selected.values.tolist() == [values[i] for i in selected.positions]


@pytest.mark.usefixtures("tiny_chunks")
@patient
@given(VECTORS, st.integers(0, 310))
def test_fast_path_equals_the_oracle(vector, k):
    check_fast(lambda: Sum.of(vector), k)


@pytest.mark.usefixtures("tiny_chunks")
@patient
@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 60), st.booleans())
def test_fast_path_of_a_sum_equals_the_oracle(seed, size, k, in_place):
    rng = np.random.default_rng(seed)
    delta, residual = rng.standard_normal((2, size)).astype(np.float32).round(1)

    def group():
        first = delta.copy()
        out = first if in_place else np.empty_like(first)
        return Sum(Sum.of(delta).tensors, out, first, residual)

    check_fast(group, k)
    total = group()
    total.top_sides(k)
    assert total.out.tobytes() == (delta + residual).tobytes()


SHAPES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "heavy": lambda rng, n: rng.standard_t(1.5, n),
    "constant": lambda rng, n: np.full(n, -2.5),
    "sorted": lambda rng, n: np.sort(rng.standard_normal(n)),
    "one-sided": lambda rng, n: rng.exponential(size=n),
    "mostly zero": lambda rng, n: rng.standard_normal(n) * (rng.random(n) < 1e-3),
    "ties at the limit": lambda rng, n: rng.integers(-40, 41, n) * (rng.random(n) < 0.1),
    "few values": lambda rng, n: rng.integers(-3, 4, n),
    "hidden from the sample": lambda rng, n: np.where(in_sample(n), 1e-3, 5),
    "the sample alone": lambda rng, n: np.where(in_sample(n), 5, 1e-3),
}


def in_sample(n):
    """Tell which entries of a vector of n the sample takes."""
    return np.isin(np.arange(n), scan.sample(np.arange(n)))


def test_ties_at_the_limit_need_no_plain_path(monkeypatch):
    """Of a change with few values, as that of a server, the scan itself finds the first k."""
    vector = np.random.default_rng(2).integers(-5, 6, 100_000).astype(np.float32)
    expected = top_positive(vector, 500), top_negative(vector, 500), top_magnitude(vector, 500)
    for name in ("top_positive", "top_negative", "top_magnitude"):
        monkeypatch.setattr(sums, name, None)
    found = (*Sum.of(vector).top_sides(500), Sum.of(vector).top_magnitudes(500))
    for one, other in zip(found, expected, strict=True):
        assert one.positions.tolist() == other.positions.tolist()
        assert one.values.tolist() == other.values.tolist()


@pytest.mark.parametrize("size", [2049, 65536, 200_001])
@pytest.mark.parametrize("density", [0.001, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_fast_path_equals_the_plain_path_at_full_size(shape, density, size):
    vector = SHAPES[shape](np.random.default_rng(5), size).astype(np.float32)
    k = num_to_keep(density, size)
    fast = (*Sum.of(vector).top_sides(k), Sum.of(vector).top_magnitudes(k))
    plain = top_positive(vector, k), top_negative(vector, k), top_magnitude(vector, k)
    for one, other in zip(fast, plain, strict=True):
        assert one.positions.tobytes() == other.positions.tobytes()
        assert one.values.tobytes() == other.values.tobytes()


def test_a_vector_with_gaps_in_memory_is_as_good_as_its_copy():
    vector = np.random.default_rng(3).standard_normal(400_000).astype(np.float32)[::2]
    found, expected = Sum.of(vector).top_sides(500), Sum.of(vector.copy()).top_sides(500)
    for one, other in zip(found, expected, strict=True):
        assert one.positions.tobytes() == other.positions.tobytes()
        assert one.values.tobytes() == other.values.tobytes()


def test_the_sample_saves_work():
    """Of normal data few entries are candidates, or the fast path would be no faster."""
    vector = np.random.default_rng(0).standard_normal(1_000_000).astype(np.float32)
    bounds = scan.limits(scan.sample(vector), 1000, len(vector))
    chunks = [(0, vector[:65536]), (65536, vector[65536 : 2 * 65536])]
    found = scan.outside(chunks, vector[: 2 * 65536], bounds)
    assert 2000 < len(found.values) * len(vector) / (2 * 65536) < 20_000


@pytest.mark.parametrize("size", [100, 3000, 200_000])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("select", [Sum.top_sides, Sum.top_magnitudes])
def test_not_finite_is_found_wherever_it_is(select, bad, size):
    for entry in (0, 1, size // 2, size - 1):
        vector = np.random.default_rng(1).standard_normal(size).astype(np.float32)
        vector[entry] = bad
        with pytest.raises(UpdateError, match=f"entry {entry} of tensor 'vector' is {bad}"):
            select(Sum.of(vector), 3)


@patient
@given(VECTORS, st.integers(1, 310))
def test_binarize_equals_the_oracle(vector, k):
    values = vector.tolist()
    plus, minus = oracle(values, k), oracle([-v for v in values], k)
    mean_plus = oracle_mean([values[i] for i in plus])
    mean_minus = oracle_mean([values[i] for i in minus])
    expected = (plus, mean_plus) if mean_plus >= -mean_minus else (minus, mean_minus)
    chosen, value = binarize(Sum.of(vector), k)
    assert chosen.positions.tolist() == expected[0]
    assert value.tobytes() == expected[1].tobytes()


@patient
@given(st.lists(FLOATS.filter(bool), max_size=50))
def test_mean_equals_the_oracle(values):
    assert mean(np.array(values, np.float32)).tobytes() == oracle_mean(values).tobytes()
