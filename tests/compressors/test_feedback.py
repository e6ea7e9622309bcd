"""Error feedback: conservation, purity and refusal."""

import numpy as np
import pytest

from fedsbc.compressors import make
from fedsbc.compressors.none import NoneOptions
from fedsbc.compressors.sbc import SbcOptions
from fedsbc.compressors.topk import TopKOptions
from fedsbc.errors import UpdateError
from fedsbc.feedback import compress_with_feedback
from fedsbc.layout import Layout

LAYOUT = Layout.of([("a", (3, 4)), ("b", (5,))])
RNG = np.random.default_rng(7)


def run(options, delta, residual=None):
    return compress_with_feedback(make(options), delta, residual, LAYOUT, {}, RNG)


def normal():
    return np.random.default_rng(1).standard_normal(LAYOUT.size).astype(np.float32)


@pytest.mark.parametrize("options", [SbcOptions(density=0.2), TopKOptions(density=0.2)])
def test_residual_is_exactly_what_was_left_out(options):
    delta, residual = normal(), normal()[::-1].copy()
    before = delta.tobytes(), residual.tobytes()
    result = run(options, delta, residual)
    expected = (delta + residual) - result.update.to_dense()
    assert result.residual.tobytes() == expected.tobytes()
    assert (delta.tobytes(), residual.tobytes()) == before


def test_no_residual_counts_as_zero():
    zero = np.zeros(LAYOUT.size, np.float32)
    without, with_zero = (run(SbcOptions(density=0.2), normal(), r) for r in (None, zero))
    assert without.residual.tobytes() == with_zero.residual.tobytes()


def test_without_error_feedback_there_is_no_residual():
    assert run(SbcOptions(density=0.2, error_feedback=False), normal()).residual is None
    none = run(NoneOptions(), normal())
    assert none.residual is None
    assert none.update.to_dense().tobytes() == normal().tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["delta", "residual"])
def test_not_finite_is_refused_with_the_tensor_named(bad, where):
    vectors = {"delta": normal(), "residual": normal()}
    vectors[where][14] = bad
    before = {name: v.tobytes() for name, v in vectors.items()}
    with pytest.raises(UpdateError, match="entry 2 of tensor 'b'"):
        run(SbcOptions(density=0.2), **vectors)
    assert {name: v.tobytes() for name, v in vectors.items()} == before


def test_a_sum_that_overflows_is_refused():
    huge = np.full(LAYOUT.size, 3e38, np.float32)
    with pytest.raises(UpdateError, match="inf"):
        run(TopKOptions(density=0.2), huge, huge)
