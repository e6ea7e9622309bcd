import sys

import numpy as np
import pytest

from fedsbc.data import partition
from fedsbc.data.partition import options_for, split
from fedsbc.errors import ConfigError, DataError
from fedsbc.seeds import Stream, generator

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 37))
KINDS = {
    "iid": options_for("iid")(),
    "dirichlet": options_for("dirichlet")(alpha=0.5),
    "shards": options_for("shards")(shards_per_client=2),
    "pathological": options_for("pathological")(classes_per_client=2),
}


def num_classes(parts):
    return [len(np.unique(LABELS[part])) for part in parts]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_clients", [10, 13])
def test_every_row_goes_to_one_client_sorted(kind, num_clients):
    parts = split(KINDS[kind], LABELS, num_clients, seed=1)
    assert len(parts) == num_clients
    assert all(len(part) > 0 and part.dtype == np.int64 for part in parts)
    assert all((np.diff(part) > 0).all() for part in parts)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(LABELS)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_alone_decides(kind):
    first, again, other = (split(KINDS[kind], LABELS, 10, seed) for seed in (1, 1, 2))
    assert all(map(np.array_equal, first, again))
    assert not all(map(np.array_equal, first, other))


def test_iid_sizes_differ_by_one_at_most():
    sizes = [len(part) for part in split(KINDS["iid"], LABELS, 13, 0)]
    assert max(sizes) - min(sizes) == 1


def test_pathological_clients_have_the_classes_asked_for():
    assert num_classes(split(KINDS["pathological"], LABELS, 12, 0)) == [2] * 12


def test_shards_give_few_classes():
    assert max(num_classes(split(KINDS["shards"], LABELS, 10, 0))) <= 4


def test_a_small_alpha_is_more_skewed_than_a_large_one():
    sharp, flat = (
        split(options_for("dirichlet")(alpha=alpha, min_size=0), LABELS, 10, 0)
        for alpha in (0.05, 100.0)
    )
    assert np.mean(num_classes(sharp)) < 5
    assert np.mean(num_classes(flat)) > 9


@pytest.mark.parametrize("kind", KINDS)
def test_more_clients_than_samples_are_refused(kind):
    with pytest.raises(DataError, match="371 clients, but only 370 samples"):
        split(KINDS[kind], LABELS, 371, 0)


def test_pitfall_22_dirichlet_refuses_within_bounded_draws_and_names_what_was_asked():
    options = options_for("dirichlet")(alpha=0.05)
    with pytest.raises(DataError, match=r"alpha=0\.05, min_size=1\) over 60 clients .* 11 draws"):
        split(options, LABELS, 60, 0)


def test_pitfall_22_empty_clients_are_there_where_they_are_allowed():
    parts = split(options_for("dirichlet")(alpha=0.05, min_size=0), LABELS, 60, 0)
    assert len(parts) == 60
    assert min(len(part) for part in parts) == 0


def test_a_class_that_no_client_would_hold_is_refused():
    with pytest.raises(DataError, match=r"leaves classes \[.*9\] to no client"):
        split(KINDS["pathological"], LABELS, 4, 0)


def test_more_classes_than_there_are_is_refused():
    with pytest.raises(DataError, match=r"classes_per_client=11\) over 10 clients cannot be had"):
        split(options_for("pathological")(classes_per_client=11), LABELS, 10, 0)


def test_more_shards_than_samples_are_refused():
    with pytest.raises(DataError, match="400 shards, but only 370 samples"):
        split(options_for("shards")(shards_per_client=40), LABELS, 10, 0)


@pytest.mark.parametrize("num_clients", [5, 3])
def test_writers_are_clients_and_never_divided(tmp_path, num_clients):
    writers = np.random.default_rng(0).permutation(np.repeat([3, 5, 8, 11, 40], 74))
    np.savez(tmp_path / "mnist_writers.npz", writer_train=writers.astype(np.int16))
    options = options_for("writers")(path=str(tmp_path))
    parts = split(options, LABELS, num_clients, 0)
    held = [set(writers[part].tolist()) for part in parts]
    assert sum(map(len, held)) == 5
    assert set.union(*held) == {3, 5, 8, 11, 40}
    assert max(map(len, held)) - min(map(len, held)) <= 1


def test_writers_refuse_other_data_and_too_many_clients(tmp_path):
    np.savez(tmp_path / "mnist_writers.npz", writer_train=np.arange(370) % 5)
    options = options_for("writers")(path=str(tmp_path))
    with pytest.raises(DataError, match="6 clients, but only 5 writers"):
        split(options, LABELS, 6, 0)
    with pytest.raises(DataError, match="370 samples, the data set has 100"):
        split(options, LABELS[:100], 5, 0)


@pytest.mark.parametrize("num_clients", [1, 7, 370])
def test_iid_deals_as_the_library_does(num_clients):
    from datasets import Dataset
    from flwr_datasets.partitioner import IidPartitioner

    order = generator(4, Stream.PARTITION).permutation(len(LABELS))
    partitioner = IidPartitioner(num_clients)
    partitioner.dataset = Dataset.from_dict({"row": order})
    for client, part in enumerate(split(KINDS["iid"], LABELS, num_clients, 4)):
        assert part.tolist() == sorted(partitioner.load_partition(client)[:]["row"])


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flwr_datasets.partitioner", None)
    with pytest.raises(DataError, match=r"pip install 'fedsbc\[sim\]'"):
        split(KINDS["shards"], LABELS, 10, 0)


def test_an_unknown_kind_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"did you mean 'dirichlet'\? known: dirichlet, iid"):
        partition.options_for("dirichlett")
