"""Each scheme against an example worked by hand."""

import numpy as np
import pytest

from fedsbc.compressors import make, options_for
from fedsbc.feedback import compress_with_feedback
from fedsbc.layout import Layout
from strategies.aggregate import BlockSum


def vector_of(*values):
    return np.array(values, np.float32)


def compress(vector, layout=None, seed=0, **given):
    compressor = make(options_for(given["name"]).model_validate(given))
    layout = layout or Layout.single(len(vector))
    state = compressor.init_state(layout)
    return compressor.compress(vector, layout, state, np.random.default_rng(seed))[0]


def dense(vector, **given):
    return compress(vector, **given).to_dense().tolist()


def test_stc_averages_what_is_sent_and_nothing_else():
    assert dense(vector_of(0, 5, 0, -4, 3, 0), name="stc", density=0.34) == [0, 4, 0, -4, 4, 0]
    assert dense(vector_of(0, 0, -7, 0), name="stc", density=0.5) == [0, 0, -7, 0]
    assert dense(vector_of(*[2] * 8), name="stc", density=0.25) == [2, 2, 0, 0, 0, 0, 0, 0]


def test_topk():
    assert dense(vector_of(1, -5, 3, 0, -3), name="topk", density=0.4) == [0, -5, 3, 0, 0]


def test_trimmed_topk_stops_at_the_first_threshold_that_k_pass():
    """Magnitudes have mean 3 and maximum 8: thresholds 7, 6, 5, 4, 3; two exceed 5."""
    vector = vector_of(8, -5.5, 2, -2, 2, 2, 2, 0.5)
    assert dense(vector, name="trimmed-topk", density=0.125) == [8, 0, 0, 0, 0, 0, 0, 0]
    loose = {"name": "trimmed-topk", "exact": False}
    assert dense(vector, density=0.25, **loose) == [8, -5.5, 0, 0, 0, 0, 0, 0]
    assert dense(vector, density=0.375, **loose) == vector.tolist()


def test_threshold_search_halves_its_way_between_k_and_2k():
    """Mean 3, maximum 8, k = 1: the first threshold, 5.5, lets 6 and 8 through."""
    vector = vector_of(8, -6, 2, -2, 2, 2, 1.5, 0.5)
    assert dense(vector, name="threshold-search", density=0.125) == [8, -6, 0, 0, 0, 0, 0, 0]
    exact = dense(vector, name="threshold-search", density=0.125, exact=True)
    assert exact == [8, 0, 0, 0, 0, 0, 0, 0]


def test_gradient_dropping_sends_what_reaches_the_sample():
    """Half of every second entry: of 4, 1, 3, 2 the second largest is 3."""
    vector = vector_of(4, 9, -1, 2.5, 3, -3, 2, 0)
    options = {"name": "gradient-dropping", "density": 0.5, "sample": 0.5}
    assert dense(vector, **options) == [4, 9, 0, 0, 3, -3, 0, 0]


def test_gaussiank_by_hand():
    """Mean 0 and deviation 2 of n - 1: k = 2 of 8 needs 0 + 2 * 1.150, which 2.5 exceeds twice."""
    vector = vector_of(2.5, -2.5, 2, -2, 1, -1, 2, -2) * np.float32((28 / 30.5) ** 0.5)
    sent = dense(vector, name="gaussiank", density=0.25)
    assert np.flatnonzero(sent).tolist() == [0, 1]


def test_randomk_sends_the_entries_that_the_seed_draws():
    vector = np.arange(1, 101, dtype=np.float32)
    update = compress(vector, name="randomk", density=0.1)
    block = update.blocks[0]
    assert block.num_kept == 10
    assert block.values.tolist() == vector[block.positions].tolist()
    other = compress(vector, name="randomk", density=0.1, seed=1).blocks[0]
    assert other.positions.tolist() != block.positions.tolist()
    scaled = compress(vector, name="randomk", density=0.1, unbiased=True, error_feedback=False)
    assert scaled.blocks[0].values.tolist() == (10 * block.values).tolist()


def test_randomk_unbiased_with_error_feedback_is_refused():
    with pytest.raises(ValueError, match="residual grows"):
        options_for("randomk")(density=0.1, unbiased=True)


def test_signsgd():
    assert dense(vector_of(3, -1, 0, -9), name="signsgd", step=0.5) == [0.5, -0.5, 0.5, -0.5]


def test_vote_of_five_clients():
    votes = [(1, -1, 1), (1, -1, -1), (-1, -1, 1), (1, 1, -1), (1, -1, -1)]
    total = BlockSum(range(5), Layout.single(3), "vote")
    for client, signs in enumerate(votes):
        total.settle(client, compress(vector_of(*signs) * 7, name="signsgd", step=0.25))
    assert total.result().tolist() == [0.25, -0.25, -0.25]


def test_ef_signsgd():
    layout = Layout.of([("a", (3,)), ("b", (1,))])
    update = compress(vector_of(1, -2, 6, -4), layout, name="ef-signsgd")
    assert update.to_dense().tolist() == [3, -3, 3, -4]


def test_onebit_means_of_each_sign():
    assert dense(vector_of(1, -2, 3, -6, 0, 0), name="onebit") == [1, -4, 1, -4, 1, 1]
    assert dense(vector_of(-1, -3), name="onebit") == [-2, -2]


def test_terngrad_sends_the_largest_and_never_zero():
    for seed in range(20):
        sent = dense(vector_of(0, -4, 1), name="terngrad", clip_deviations=None, seed=seed)
        assert sent[:2] == [0, -4]
        assert sent[2] in (0, 4)


def test_terngrad_clips_to_deviations():
    """Root mean square 2: clipped to 3, which then is the scale."""
    vector = vector_of(4, 0, 0, 0)
    assert dense(vector, name="terngrad", clip_deviations=1.5) == [3, 0, 0, 0]


def test_qsgd_leaves_whole_levels_alone():
    """Buckets of two with norms 5 and 13, a level is a fifth or a thirteenth of it."""
    five = vector_of(3, -4, 0, 5)
    assert dense(five, name="qsgd", levels=5, bucket_size=2) == [3, -4, 0, 5]
    thirteen = vector_of(5, 12)
    assert dense(thirteen, name="qsgd", levels=13, bucket_size=2) == [5, 12]


def test_qsgd_rounds_to_a_neighbouring_level():
    for seed in range(20):
        sent = dense(vector_of(1, -0.3), name="qsgd", norm="max", levels=4, seed=seed)
        assert sent[0] == 1
        assert sent[1] in (-0.25, -0.5)


@pytest.mark.parametrize("size", [1, 3, 100, -2])
def test_qsgd_buckets_are_powers_of_two(size):
    with pytest.raises(ValueError, match="bucket_size"):
        options_for("qsgd")(bucket_size=size)


def test_float16_rounds_and_keeps_within_its_range():
    sent = dense(vector_of(1 + 2**-12, -1e9, 0.5), name="none", dtype="float16")
    assert sent == [1, -65504, 0.5]


def test_float32_has_no_error_feedback():
    with pytest.raises(ValueError, match="float32 leaves nothing out"):
        options_for("none")(error_feedback=True)


def test_dgc_two_steps_by_hand():
    """m = 0.5, k = 1 of 4. Momentum u and residual v:

    step 1: g = (4, 2, 0, 0): u = v = (4, 2, 0, 0); sends 4 at 0; u, v = (0, 2, 0, 0)
    step 2: g = (1, 1, 0, -1): u = (1, 2, 0, -1), v = (1, 4, 0, -1); sends 4 at 1
    """
    layout = Layout.of([("w", (2, 2))])
    compressor = make(options_for("dgc")(density=0.25, momentum=0.5))
    state, rng = compressor.init_state(layout), np.random.default_rng(0)
    first = compress_with_feedback(compressor, vector_of(4, 2, 0, 0), None, layout, state, rng)
    assert first.update.to_dense().tolist() == [4, 0, 0, 0]
    assert first.residual.tolist() == [0, 2, 0, 0]
    assert first.state["momentum"].tolist() == [0, 2, 0, 0]
    second = compress_with_feedback(
        compressor, vector_of(1, 1, 0, -1), first.residual, layout, first.state, rng
    )
    assert second.update.to_dense().tolist() == [0, 4, 0, 0]
    assert second.residual.tolist() == [1, 0, 0, -1]
    assert second.state["momentum"].tolist() == [1, 0, 0, -1]
    assert second.state["num_rounds"].tolist() == [2]


def dgc_step(delta, shape=(2, 2), **options):
    layout = Layout.of([("w", shape)])
    compressor = make(options_for("dgc")(**{"density": 0.25, "momentum": 0.5, **options}))
    state = compressor.init_state(layout)
    return compress_with_feedback(compressor, delta, None, layout, state, np.random.default_rng(0))


def test_dgc_options_by_hand():
    delta = vector_of(3, 0, -4, 0)
    assert dgc_step(delta, nesterov=True).update.to_dense().tolist() == [0, 0, -6, 0]
    assert dgc_step(delta, masking=False).state["momentum"].tolist() == [3, 0, -4, 0]
    clipped = dgc_step(delta, clip_norm=5.0, clip_clients=4)
    assert clipped.update.to_dense().tolist() == [0, 0, -2, 0]
    assert dgc_step(delta, warmup=[0.5]).update.to_dense().tolist() == [3, 0, -4, 0]


def test_dgc_sends_vectors_dense_and_keeps_their_momentum():
    result = dgc_step(vector_of(3, 0, -4, 0), shape=(4,))
    assert result.update.to_dense().tolist() == [3, 0, -4, 0]
    assert result.state["momentum"].tolist() == [3, 0, -4, 0]
    assert not result.residual.any()
