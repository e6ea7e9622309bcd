"""Sites and keepers without a cluster: the other nodes are folders, their keepers objects here."""

import os
from concurrent.futures import Future

import numpy as np
import pytest
import ray

from fedsbc.checkpoint import Snapshot, save
from fedsbc.errors import StatesLost
from fedsbc.ledger import Ledger
from fedsbc.shared_weights import shared_weights
from fedsbc.state import ClientState
from fedsbc.state_files import FileHome
from sims.counter import STARTING, Counter
from sims.fleet import Fleet
from sims.keeper import Keeper
from sims.sites import LocalSite, RemoteSite

RUN = "0123456789abcdef"
NUM_CLIENTS = 6


class Elsewhere(RemoteSite):
    """A remote site whose keeper is in this process; `is_gone` is its node's death."""

    def __init__(self, root, num_actors=1):
        root.mkdir()
        super().__init__(root.name, num_actors, root, lambda *given: given, Keeper(root))
        self.is_gone = False
        self.asked = []

    def ask(self, method, *arguments):
        answer = Future()
        self.asked.append(method)
        if self.is_gone:
            answer.set_exception(ray.exceptions.RayActorError())
        else:
            answer.set_result(getattr(self.keeper, method)(*arguments))
        return answer


def make(tmp_path, actors=(1, 1), check=lambda has_died: None):
    here = tmp_path / "here"
    here.mkdir()
    local = LocalSite(actors[0], here, lambda *given: given)
    others = [Elsewhere(tmp_path / f"node{i}", count) for i, count in enumerate(actors[1:])]
    fleet = Fleet([local, *others], NUM_CLIENTS, check)
    fleet.begin("1", None)
    return fleet


@pytest.fixture
def no_store(monkeypatch):
    monkeypatch.setattr(ray, "put", lambda thing: thing)


def train(fleet, clients, round):
    """Write the states that actors would write."""
    for client in clients:
        folder = fleet.sites[fleet.home_of(client)].states
        residual = np.full(100, 1000 * client + round, np.float32)
        FileHome(folder, RUN, client).save(
            ClientState(RUN, round, round - 1, {"residual": residual})
        )


def load(fleet, client, before_round=99):
    state = FileHome(fleet.sites[fleet.home_of(client)].states, RUN, client).load(before_round)
    return None if state is None else (state.round, float(state.arrays["residual"][0]))


def snapshot(round):
    return Snapshot(RUN, round, 0, [], ("", ""), {}, Ledger(), [])


def test_weights_are_published_at_each_site(tmp_path, no_store):
    fleet = make(tmp_path, (1, 1, 1))
    weights = np.arange(10, dtype=np.float32)
    fleet.publish(3, weights, weights[:0])
    for site in fleet.sites:
        found, _ = shared_weights(site.states).read(3)
        assert found.tolist() == weights.tolist()


def test_files_reach_the_other_sites_in_parts(tmp_path, no_store, monkeypatch):
    monkeypatch.setattr("sims.fleet.CHUNK_BYTES", 7)
    fleet = make(tmp_path, (1, 1, 1))
    (fleet.sites[0].root / "data").write_bytes(bytes(range(50)))
    fleet.spread(["data"])
    for site in fleet.sites:
        assert (site.root / "data").read_bytes() == bytes(range(50))


def test_a_checkpoint_has_the_states_of_all_sites_and_brings_only_the_changed_ones(tmp_path):
    fleet = make(tmp_path)
    train(fleet, range(NUM_CLIENTS), 1)
    folder = tmp_path / "checkpoint"
    first = save(folder, snapshot(1), {}, fleet.sites[0].states, fleet.gather)
    assert first.states_written == NUM_CLIENTS
    train(fleet, [1], 2)
    fleet.sites[1].asked.clear()
    second = save(folder, snapshot(2), {}, fleet.sites[0].states, fleet.gather)
    assert (second.states_written, second.states_linked) == (1, NUM_CLIENTS - 1)
    assert fleet.sites[1].asked == ["newest", "read"]
    gathered = list((fleet.sites[0].root / "gathered").iterdir())
    assert [path.name for path in gathered] == ["client-00001.a"]
    # and it brings them back, wherever their homes are then
    (tmp_path / "again").mkdir()
    again = make(tmp_path / "again", (1, 2, 1))
    again.begin("2", folder / "round-000002")
    found = [load(again, client) for client in range(NUM_CLIENTS)]
    assert found == [(1, 1.0), (2, 1002.0), *((1, 1000.0 * c + 1) for c in (2, 3, 4, 5))]


def test_a_state_moves_with_both_its_rounds(tmp_path):
    fleet = make(tmp_path)
    fleet._homes = [1] * NUM_CLIENTS  # more than one actor should have to do
    for round in (1, 2):
        train(fleet, range(NUM_CLIENTS), round)
    fleet.settle(range(NUM_CLIENTS))
    moved = [client for client in range(NUM_CLIENTS) if fleet.home_of(client) == 0]
    assert len(moved) == 3
    for client in range(NUM_CLIENTS):
        assert load(fleet, client) == (2, 1000.0 * client + 2)
        assert load(fleet, client, before_round=2) == (1, 1000.0 * client + 1)
    for client in moved:
        assert not list(fleet.sites[1].states.glob(f"client-{client:05d}*")), "no copy stays"


def test_one_site_asks_nobody(tmp_path):
    fleet = make(tmp_path, (2,))
    train(fleet, range(NUM_CLIENTS), 1)
    fleet.settle(range(NUM_CLIENTS))
    fleet.spread(["nothing"])
    assert fleet.gather(RUN, 2, {}) == []
    assert not (fleet.sites[0].root / "gathered").exists()


def test_a_keeper_that_is_gone_is_a_loss_of_states(tmp_path, no_store):
    looked = []
    fleet = make(tmp_path, check=looked.append)
    fleet.sites[1].is_gone = True
    with pytest.raises(StatesLost, match="keeper has died"):
        fleet.publish(1, np.zeros(3, np.float32), np.zeros(0, np.float32))
    with pytest.raises(StatesLost):
        save(tmp_path / "checkpoint", snapshot(1), {}, fleet.sites[0].states, fleet.gather)
    assert looked == [True, True], "the nodes were looked at first"
    assert list((tmp_path / "checkpoint").iterdir()) == [], "no half of a checkpoint"


def test_a_fresh_start_forgets_states_and_weights(tmp_path):
    fleet = make(tmp_path)
    train(fleet, range(NUM_CLIENTS), 1)
    before = [site.states for site in fleet.sites]
    fleet.begin("2", None)
    assert all(not folder.exists() for folder in before)
    assert [load(fleet, client) for client in range(NUM_CLIENTS)] == [None] * NUM_CLIENTS


def test_progress_of_another_node_is_known_a_moment_later(tmp_path, monkeypatch):
    monkeypatch.setattr("sims.sites.PROGRESS_EVERY_S", 0.0)
    site = make(tmp_path).sites[1]
    progress, (node_config, counter) = site.start_actor()
    assert node_config["state-dir"] == str(site.states)
    assert progress.value == STARTING
    Counter(counter, 4)
    values = [progress.value for _ in range(3)]
    assert values[-1] == 4
    site.is_gone = True
    assert [progress.value for _ in range(3)] == [4, 4, 4], "that is not its business"


def test_a_node_keeps_the_folders_of_living_keepers_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    old = tmp_path / f"fedsbc-node-{os.getuid()}-old"
    old.mkdir()
    keeper = Keeper(token="mine")
    assert not old.exists()
    Keeper(token="another")
    assert keeper.root.exists(), "its keeper is alive"
    keeper.close()
    assert not keeper.root.exists()
