"""Schemes against closed forms: contraction, unbiasedness, counts."""

import numpy as np
import pytest

from fedsbc.compressors import make, options_for
from fedsbc.compressors.sums import Sum
from fedsbc.compressors.topk import TopK
from fedsbc.layout import Layout
from tests.compressors.formulas import gaussiank_ratios

CONTRACTION = {
    "normal": {0.001: 0.98730, 0.01: 0.91551, 0.1: 0.56071},
    "laplace": {0.001: 0.96823, 0.01: 0.83791, 0.1: 0.40465},
    "uniform": {0.001: 0.99700, 0.01: 0.97030, 0.1: 0.72900},
}
"""What Top-k leaves of the squared norm at density p: 1 - p - 2 z phi(z) with z the quantile of
1 - p / 2; 1 - p (1 + L + L^2 / 2) with L = ln(1 / p); (1 - p)^3."""


def draw(kind, size, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        return rng.uniform(-1, 1, size).astype(np.float32)
    return getattr(rng, kind)(size=size).astype(np.float32)


def compress(vector, seed=0, **given):
    compressor = make(options_for(given["name"]).model_validate(given))
    layout = Layout.single(len(vector))
    rng = np.random.default_rng(seed)
    return compressor.compress(vector, layout, compressor.init_state(layout), rng)[0]


def energy(vector):
    return float(np.sum(np.square(vector, dtype=np.float64)))


@pytest.mark.parametrize("density", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("kind", CONTRACTION)
def test_topk_leaves_what_the_closed_form_says(kind, density):
    vector = draw(kind, 1_000_000)
    left = energy(vector - compress(vector, name="topk", density=density).to_dense())
    assert left / energy(vector) == pytest.approx(CONTRACTION[kind][density], abs=0.002)


def test_topk_of_model_scope_leaves_least():
    """No set of k entries leaves less than the k largest of all."""
    layout = Layout.of([("a", (500,)), ("b", (1500,))])
    vector = draw("normal", 2000) * np.repeat(np.float32([1, 5]), [500, 1500])
    scheme = {
        scope: TopK(options_for("topk")(density=0.1, scope=scope)) for scope in ("tensor", "model")
    }
    left = {
        scope: energy(
            vector - c.compress(vector, layout, {}, np.random.default_rng(0))[0].to_dense()
        )
        for scope, c in scheme.items()
    }
    best = np.sort(np.abs(vector))[:-200]
    assert left["model"] == pytest.approx(energy(best))
    assert left["model"] < left["tensor"]


@pytest.mark.parametrize("density", [0.01, 0.1])
def test_randomk_leaves_one_minus_density(density):
    vector = draw("normal", 200_000)
    left = energy(vector - compress(vector, name="randomk", density=density).to_dense())
    assert left / energy(vector) == pytest.approx(1 - density, abs=0.005)


@pytest.mark.parametrize(
    "given",
    [
        {"name": "terngrad", "clip_deviations": None},
        {"name": "qsgd", "levels": 4, "bucket_size": 16},
        {"name": "qsgd", "levels": 2, "bucket_size": 0, "norm": "max"},
        {"name": "randomk", "density": 0.25, "unbiased": True, "error_feedback": False},
    ],
    ids=lambda given: given["name"],
)
def test_unbiased_over_draws(given):
    """The mean of many draws is within five standard errors of the change, for every entry."""
    vector, num_draws = draw("normal", 40), 4000
    sent = np.array([compress(vector, seed=i, **given).to_dense() for i in range(num_draws)], float)
    errors = sent.std(axis=0, ddof=1) / np.sqrt(num_draws)
    assert (np.abs(sent.mean(axis=0) - vector) <= 5 * errors + 1e-6).all()
    assert errors.max() > 0


@pytest.mark.parametrize("density", [0.001, 0.005, 0.01])
def test_gaussiank_counts_k_on_normal_data(density):
    size = 10_000_000
    vector = np.random.default_rng(1).standard_normal(size, dtype=np.float32)
    count = compress(vector, name="gaussiank", density=density).num_kept
    assert count == pytest.approx(density * size, rel=0.03)


@pytest.mark.parametrize(
    ("density", "ratios"), [(0.005, [3.8, 0.52, 10.2, 2.3]), (0.01, [2.6, 0.42, 6.5, 1.65])]
)
def test_gaussiank_counts_on_laplace_data_overshoot(density, ratios):
    """Both ways of the window; the published program stops at the third figure."""
    counts = gaussiank_ratios(draw("laplace", 1_000_000), density)
    assert counts == pytest.approx(ratios, rel=0.05)


@pytest.mark.parametrize(("kind", "num_sent"), [("constant", 0), ("shifted", 100_000)])
def test_gaussiank_sends_nothing_or_everything_of_one_sided_data(kind, num_sent):
    noise = np.random.default_rng(0).standard_normal(100_000) if kind == "shifted" else 0
    vector = (np.full(100_000, -5.0) + noise).astype(np.float32) * (-1 if kind == "constant" else 1)
    assert compress(vector, name="gaussiank", density=0.01).num_kept == num_sent


@pytest.mark.parametrize("kind", ["laplace", "student", "constant", "shifted"])
def test_max_ratio_bounds_what_gaussiank_sends(kind):
    size, density = 200_000, 0.005
    rng = np.random.default_rng(3)
    vector = {
        "laplace": rng.laplace(size=size),
        "student": rng.standard_t(4, size),
        "constant": np.full(size, 2.0),
        "shifted": rng.standard_normal(size) - 5,
    }[kind].astype(np.float32)
    free = compress(vector, name="gaussiank", density=density).num_kept
    bounded = compress(vector, name="gaussiank", density=density, max_ratio=1.5)
    assert bounded.num_kept == min(free, 1500)
    chosen = Sum.of(vector).top_magnitudes(1500).positions
    if free > 1500:
        assert bounded.blocks[0].positions.tolist() == chosen.tolist()


@pytest.mark.parametrize("kind", ["normal", "laplace"])
@pytest.mark.parametrize("density", [0.001, 0.01])
def test_threshold_schemes_count_as_they_promise(kind, density):
    vector = draw(kind, 1_000_000)
    k = int(density * len(vector))

    def ratio(**given):
        return compress(vector, density=density, **given).num_kept / k

    assert 1 <= ratio(name="threshold-search") <= 2
    assert ratio(name="threshold-search", exact=True) == 1
    assert ratio(name="trimmed-topk") == 1
    assert ratio(name="trimmed-topk", exact=False) > 1.2
    assert 0.7 <= ratio(name="gradient-dropping", sample=0.01) <= 1.4
    assert 0.8 <= ratio(name="dgc", dense_vectors=False) <= 1
