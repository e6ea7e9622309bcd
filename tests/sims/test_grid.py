"""How the messages of a round become batches for the actors."""

from types import SimpleNamespace

from flwr.app import Message, MessageType, RecordDict
from hypothesis import given
from hypothesis import strategies as st

from sims.actor import node_of
from sims.flower_private import identify_server
from sims.grid import MAX_BATCH, RayGrid, batch_sizes
from strategies.exchange import Outgoing


class NotedPool:
    """Takes batches and says how many messages had been made by then."""

    def __init__(self):
        self.batches, self.made = [], []
        self.messages = []

    def submit(self, batch, site):
        self.batches.append((site, len(batch)))
        self.made.append(len(self.messages))


class Sites:
    """Clients 0, 1, 2, ... on one site after the other."""

    def __init__(self, *num_actors):
        self.sites = [SimpleNamespace(num_actors=n, states=None) for n in num_actors]
        self.settled = []

    def home_of(self, client):
        return client % len(self.sites)

    def settle(self, clients):
        self.settled = list(clients)


def requests(pool, count):
    identify_server()
    for client in range(count):
        pool.messages.append(
            Message(RecordDict(), node_of(client), MessageType.TRAIN, group_id="1")
        )
        yield pool.messages[-1]


def test_the_first_batch_is_handed_over_before_the_last_message_is_made():
    pool = NotedPool()
    grid = RayGrid(pool, Sites(2), 40)
    ids = list(grid.push_messages(Outgoing(requests(pool, 40), 40)))
    assert [size for _, size in pool.batches] == list(batch_sizes(40, 2))
    assert pool.made[0] == pool.batches[0][1] < 40
    assert ids == [message.metadata.message_id for message in pool.messages]
    assert len(set(ids)) == 40


def test_on_several_sites_clients_are_settled_before_anything_is_handed_over():
    pool, fleet = NotedPool(), Sites(1, 3)
    ids = list(RayGrid(pool, fleet, 9).push_messages(Outgoing(requests(pool, 9), 9)))
    assert fleet.settled == list(range(9))
    assert set(pool.made) == {9}
    assert sum(size for site, size in pool.batches if site == 0) == 5
    assert sum(size for site, size in pool.batches if site == 1) == 4
    assert ids == [message.metadata.message_id for message in pool.messages]


def test_messages_of_unknown_number_are_sent_too():
    pool = NotedPool()
    assert len(list(RayGrid(pool, Sites(2), 5).push_messages(requests(pool, 5)))) == 5
    assert sum(size for _, size in pool.batches) == 5


@given(st.integers(0, 500), st.integers(1, 64))
def test_batches_hold_all_messages_and_leave_no_actor_without(count, num_actors):
    sizes = list(batch_sizes(count, num_actors))
    assert sum(sizes) == count
    assert all(0 < size <= MAX_BATCH for size in sizes)
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) >= min(count, num_actors)
    # Nobody begins with more than an equal share.
    assert max(sizes, default=0) <= -(-count // num_actors)
