"""One contract for every compressor: a new scheme adds its options to one of the lists."""

import pytest

from fedsbc import testing
from fedsbc.compressors import TABLE, make, options_for

EXACTLY_K = [
    {"name": "sbc", "density": 0.05},
    {"name": "sbc", "density": 0.05, "scope": "model"},
    {"name": "sbc", "density": 0.05, "error_feedback": False},
    {"name": "sbc", "density": 0.05, "values": "float32"},
    {"name": "sbc", "density": 0.05, "values": "signs", "scope": "model"},
    {"name": "sbc", "density": 0.05, "values": "two-means"},
    {"name": "sbc", "density": 0.05, "values": "two-means", "scope": "model"},
    {"name": "stc", "density": 0.05},
    {"name": "stc", "density": 0.05, "scope": "model"},
    {"name": "topk", "density": 0.05},
    {"name": "topk", "density": 0.05, "scope": "model"},
    {"name": "trimmed-topk", "density": 0.05},
    {"name": "threshold-search", "density": 0.05, "exact": True},
    {"name": "randomk", "density": 0.05},
    {"name": "randomk", "density": 0.05, "unbiased": True, "error_feedback": False},
    {"name": "dgc", "density": 0.05, "dense_vectors": False},
]
"""Schemes that send exactly k entries."""

OTHERS = [
    {"name": "none"},
    {"name": "none", "dtype": "float16"},
    {"name": "none", "dtype": "float16", "error_feedback": True},
    {"name": "gaussiank", "density": 0.05},
    {"name": "gaussiank", "density": 0.05, "scope": "tensor", "max_ratio": 1.5},
    {"name": "dgc", "density": 0.05, "nesterov": True, "clip_norm": 1.0, "warmup": [0.5, 0.1]},
    {"name": "trimmed-topk", "density": 0.05, "exact": False},
    {"name": "threshold-search", "density": 0.05},
    {"name": "gradient-dropping", "density": 0.05},
    {"name": "signsgd"},
    {"name": "ef-signsgd"},
    {"name": "onebit"},
    {"name": "onebit", "error_feedback": False},
    {"name": "terngrad"},
    {"name": "terngrad", "clip_deviations": None},
    {"name": "qsgd"},
    {"name": "qsgd", "norm": "max", "levels": 1, "bucket_size": 0},
]
"""Schemes without a density, or whose count is an estimate."""


def describe(given):
    return ",".join(f"{value}" for value in given.values())


def compressor_of(given):
    return make(options_for(given["name"]).model_validate(given))


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("given", EXACTLY_K + OTHERS, ids=describe)
def test_contract(given, check):
    check(compressor_of(given))


@pytest.mark.parametrize("given", EXACTLY_K, ids=describe)
def test_exactly_k_of_equal_entries(given):
    testing.check_count(compressor_of(given))


def test_every_scheme_of_the_table_is_here():
    assert {given["name"] for given in EXACTLY_K + OTHERS} == set(TABLE)
