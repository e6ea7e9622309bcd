"""Tensors that trip compressors up elsewhere, through every scheme of the table."""

import numpy as np
import pytest
import torch

from fedsbc.compressors import TABLE, as_vector, make, options_for
from fedsbc.feedback import compress_with_feedback
from fedsbc.layout import Layout
from fedsbc.payload import decode, encode

EXACT = {"sbc", "stc", "topk"}
"""Schemes that send exactly k where so many qualify."""

TENSORS = {
    "all zero": torch.zeros(200),
    "constant": torch.full((200,), -0.25),
    "one element": torch.tensor([3.0]),
    "empty": torch.zeros(0),
    "0-d": torch.tensor(-2.0),
    "denormal": torch.full((200,), 1e-42),
    "fp16": torch.linspace(-1, 1, 200).to(torch.float16),
    "bf16": torch.linspace(-1, 1, 200).to(torch.bfloat16),
}


def scheme(name):
    fields = options_for(name).model_fields
    return make(options_for(name).model_validate({"density": 0.05} if "density" in fields else {}))


def sent(compressor, vector, layout):
    """Return the decoded update of a change, and the residual."""
    state, draws = compressor.init_state(layout), np.random.default_rng(0)
    compressed = compress_with_feedback(compressor, vector, None, layout, state, draws)
    update = decode(encode(compressed.update), layout)
    assert update == compressed.update
    return update, compressed.residual


@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("name", TABLE)
def test_pitfall_26_odd_tensors_through_every_compressor(name, tensor):
    compressor, values = scheme(name), TENSORS[tensor]
    vector = as_vector(values)
    layout = Layout.of([("odd", tuple(values.shape)), ("other", (40,))])
    vector = np.concatenate([vector, np.linspace(-1, 1, 40, dtype=np.float32)])
    update, residual = sent(compressor, vector, layout)
    assert np.isfinite(update.to_dense()).all()
    if residual is not None:
        total = update.to_dense().astype(np.float64) + residual
        np.testing.assert_allclose(total, vector, atol=1e-6)


@pytest.mark.parametrize("name", sorted(EXACT))
def test_pitfall_26_zeros_are_never_sent_and_of_ties_exactly_k(name):
    compressor = scheme(name)
    layout = Layout.of([("a", (200,))])
    few = layout.zeros()
    few[[3, 70]] = 2.0
    update, _ = sent(compressor, few, layout)
    assert update.num_kept == 2, "k is 10, but only two qualify"
    assert np.flatnonzero(update.to_dense()).tolist() == [3, 70]
    assert update.to_dense()[3] == 2.0
    ties, _ = sent(compressor, layout.zeros() + 1, layout)
    assert ties.num_kept == 10
    assert np.flatnonzero(ties.to_dense()).tolist() == list(range(10))
