"""Homes of clients, and when they move."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sims.homes import LIMIT, assign, moves

ACTORS = st.lists(st.integers(0, 8), min_size=1, max_size=6).filter(any)


@given(st.integers(1, 300), ACTORS)
def test_each_actor_has_as_many_clients_as_any(num_clients, actors):
    load = Counter(assign(num_clients, actors))
    for site, count in enumerate(actors):
        share = num_clients * count / sum(actors)
        assert abs(load[site] - share) <= max(count, 1) * (count > 0)
    assert assign(num_clients, actors) == assign(num_clients, actors)


def test_neighbours_are_spread_over_the_sites():
    assert assign(6, [1, 1]) == [0, 1, 0, 1, 0, 1]
    assert Counter(assign(400, [2, 0, 6])) == {0: 100, 2: 300}


def test_a_round_that_is_a_little_uneven_stays_as_it_is():
    homes = {client: int(client >= 24) for client in range(40)}
    assert moves(homes, [2, 2]) == {}
    assert moves({0: 0, 1: 0}, [1, 1]) == {}, "two clients of one actor"


def test_a_round_on_one_site_is_levelled():
    moved = moves(dict.fromkeys(range(40), 0), [2, 2])
    assert len(moved) == 20
    assert set(moved.values()) == {1}


def test_clients_of_a_site_without_actors_move():
    assert moves({3: 1, 5: 1}, [4, 0]) == {3: 0, 5: 0}


def test_a_crowded_site_is_relieved_by_sites_that_have_less_than_half_a_client():
    moved = moves(dict.fromkeys(range(10), 0), [1] * 25)
    assert len(moved) == len(set(moved.values())) == 9
    assert len(moves(dict.fromkeys(range(6), 0), [1, 1, 1, 3, 7])) == 5


@given(st.data(), ACTORS)
def test_nobody_is_worse_off_after_a_move(data, actors):
    sites = st.integers(0, len(actors) - 1)
    homes = dict(enumerate(data.draw(st.lists(sites, min_size=1, max_size=60))))
    moved = moves(homes, actors)
    after = Counter({**homes, **moved}.values())
    for site, count in enumerate(actors):
        share = len(homes) * count / sum(actors)
        assert after[site] <= (max(LIMIT * share + count, share + 1) if not moved else share + 1)


@pytest.mark.parametrize("actors", [[1], [3, 3, 3]])
def test_balanced_homes_never_move(actors):
    homes = dict(enumerate(assign(60, actors)))
    assert moves(homes, actors) == {}
