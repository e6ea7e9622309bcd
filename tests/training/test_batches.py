from itertools import islice

import numpy as np
import pytest
import torch

from fedsbc.arrays import ALIGNMENT_BYTES
from fedsbc.training.batches import GATHER_BYTES, batches, gather, num_batches, take


def draw(num_samples, batch_size, count, join_single=False, seed=0):
    order = batches(num_samples, batch_size, np.random.default_rng(seed), join_single)
    return list(islice(order, count))


@pytest.mark.parametrize("join_single", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("num_samples", [1, 2, 6, 7, 8])
def test_every_epoch_has_every_sample_once(num_samples, batch_size, join_single):
    count = num_batches(num_samples, batch_size, join_single)
    drawn = draw(num_samples, batch_size, 2 * count, join_single)
    for epoch in (drawn[:count], drawn[count:]):
        assert np.array_equal(np.sort(np.concatenate(epoch)), np.arange(num_samples))


def test_the_last_batch_holds_what_is_left_and_epochs_differ():
    drawn = draw(7, 3, 6)
    assert [len(batch) for batch in drawn] == [3, 3, 1, 3, 3, 1]
    assert not np.array_equal(np.concatenate(drawn[:3]), np.concatenate(drawn[3:]))


def test_pitfall_23_a_last_batch_of_one_joins_the_one_before_it():
    assert [len(batch) for batch in draw(7, 3, 4, join_single=True)] == [3, 4, 3, 4]
    assert [len(batch) for batch in draw(1, 3, 2, join_single=True)] == [1, 1]
    assert [len(batch) for batch in draw(2, 1, 2, join_single=True)] == [1, 1]


@pytest.mark.parametrize("channels", [1, 3])
def test_samples_keep_their_values_and_have_channels_last_in_memory(channels):
    x = torch.rand(5, channels, 4, 6)
    rows = torch.tensor([3, 0])
    taken = take(x, rows)
    assert torch.equal(taken, x[rows])
    assert taken.stride() == (24 * channels, 1, 6 * channels, channels)
    flat = torch.rand(5, 7)
    assert torch.equal(take(flat, rows), flat[rows])


SHAPES = [(1, 28, 28), (3, 32, 32), (1, 4, 4), (5,), (16,), (1, 9, 7)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batch_size", [1, 7, 10, 400])
def test_batches_that_are_gathered_together_are_those_taken_one_by_one(shape, batch_size):
    x, y = torch.rand(900, *shape), torch.arange(900) % 10
    rows = np.random.default_rng(1).permutation(900)[:500]
    order = draw(len(rows), batch_size, 12)
    gathered = list(gather(x, y, rows, iter(order), x.device))
    assert len(gathered) == len(order)
    for (samples, labels), batch in zip(gathered, order, strict=True):
        chosen = torch.from_numpy(rows[batch])
        alone = take(x, chosen)
        assert torch.equal(samples, alone)
        assert samples.stride() == alone.stride()
        assert samples.data_ptr() % ALIGNMENT_BYTES == 0
        assert torch.equal(labels, y[chosen])


def test_what_is_gathered_together_stays_small():
    x = torch.rand(3000, 1, 28, 28)
    order = draw(3000, 10, 300)
    sizes = {
        samples.untyped_storage().nbytes()
        for samples, _ in gather(x, torch.zeros(3000), np.arange(3000), order, x.device)
    }
    assert GATHER_BYTES / 2 < max(sizes) <= GATHER_BYTES


def test_no_step_gathers_nothing():
    assert (
        list(gather(torch.rand(3, 16), torch.zeros(3), np.arange(3), [], torch.device("cpu"))) == []
    )
