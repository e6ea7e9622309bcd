"""One contract for every compressor: a new scheme adds its options to this list."""

import pytest

from fedsbc import testing
from fedsbc.compressors import TABLE, make, options_for

OPTIONS = [
    {"name": "none"},
    {"name": "sbc", "density": 0.05},
    {"name": "sbc", "density": 0.05, "scope": "model"},
    {"name": "sbc", "density": 0.05, "error_feedback": False},
    {"name": "topk", "density": 0.05},
    {"name": "topk", "density": 0.05, "scope": "model"},
]


def compressor_of(given):
    return make(options_for(given["name"]).model_validate(given))


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("given", OPTIONS, ids=lambda given: "-".join(map(str, given.values())))
def test_contract(given, check):
    check(compressor_of(given))


def test_every_scheme_of_the_table_is_here():
    assert {given["name"] for given in OPTIONS} == set(TABLE)
