"""What a change may look like: float32 and flat, or converted by `as_vector`."""

import numpy as np
import pytest
import torch

from fedsbc.compressors import as_vector, make
from fedsbc.compressors.sbc import SbcOptions
from fedsbc.errors import UpdateError
from fedsbc.feedback import compress_with_feedback
from fedsbc.layout import Layout

HALF_EXACT = [1.5, -0.25, 0.0, 3.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_torch_types_are_converted_exactly(dtype):
    vector = as_vector(torch.tensor(HALF_EXACT, dtype=dtype).reshape(2, 2))
    assert vector.dtype == np.float32
    assert vector.tolist() == HALF_EXACT


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numpy_types_are_converted_exactly_and_copied(dtype):
    given = np.array(HALF_EXACT, dtype).reshape(2, 2)
    vector = as_vector(given)
    vector[:] = 9
    assert given.ravel().tolist() == HALF_EXACT


def test_a_scalar_is_one_entry():
    assert as_vector(torch.tensor(2.0, requires_grad=True)).tolist() == [2.0]


def test_float64_rounds_once_and_too_large_is_infinite():
    assert as_vector(np.array([1 + 2**-40, 1e300])).tolist() == [1.0, np.inf]


@pytest.mark.parametrize("given", [np.arange(3), torch.arange(3), np.array(["a"])])
def test_other_types_are_refused(given):
    with pytest.raises(UpdateError, match="floating"):
        as_vector(given)


@pytest.mark.parametrize(
    "vector", [np.ones(3, np.float16), np.ones(3), np.ones((3, 1), np.float32), np.ones(4, "f4")]
)
def test_compressors_take_float32_of_length_d_alone(vector):
    compressor, layout = make(SbcOptions(density=0.5)), Layout.single(3)
    good = np.ones(3, np.float32)
    rng = np.random.default_rng(0)
    with pytest.raises(UpdateError, match=r"float32 vector of shape \(3,\)"):
        compressor.compress(vector, layout, {}, rng)
    for delta, residual in ((vector, good), (good, vector)):
        with pytest.raises(UpdateError, match="float32 vector of shape"):
            compress_with_feedback(compressor, delta, residual, layout, {}, rng)
