"""Devices that lose, keep or outrun their state: the server answers with the full model."""

import shutil

import numpy as np
import pytest
from flwr.app import Array

from fedsbc.message import ARRAYS, FIELDS
from fedsbc.state_files import FileHome
from fedsbc.state_slot import Slot
from tests.experiments import Notes, initial, play, small
from tests.hostile import ATTACKS
from tests.local_grid import LocalGrid
from tests.strategies.test_rounds import client_of, is_hello

LOST = 3


def contents_of(grid, client):
    """Return how the weights travelled to a client, one word a round."""
    records = [content[FIELDS] for content in grid.sent_content]
    return [r["content"] for r in records if r["kind"] == "train" and r["client_id"] == client]


def config_of(*overrides):
    return small("rounds=4", "transport=wire", "downstream.name=topk",
                 "downstream.density=0.01", *overrides)  # fmt: skip


def forget(states):
    for path in states.glob(f"client-{LOST:05d}.*"):
        path.unlink()


def outrun(states):
    """Leave a state of a version that the server has not reached."""
    run_id = Slot(next(states.glob("*.a"))).header()["run_id"]
    home = FileHome(states, run_id, LOST)
    state = home.load(10**6)
    state.base_version = 99
    for path in states.glob(f"client-{LOST:05d}.*"):
        path.unlink()
    state.arrays = {name: np.array(array) for name, array in state.arrays.items()}
    home.save(state)


def alter(states):
    """Leave a base of the right version with other weights."""
    run_id = Slot(next(states.glob("*.a"))).header()["run_id"]
    home = FileHome(states, run_id, LOST)
    state = home.load(10**6)
    state.arrays = {name: np.array(array) for name, array in state.arrays.items()}
    state.arrays["base"][0] += 1
    for path in states.glob(f"client-{LOST:05d}.*"):
        path.unlink()
    home.save(state)


ACCIDENTS = {
    forget: "holds version -1, but",
    outrun: "holds version 99, but",
    alter: "has hash",
}


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_a_device_whose_base_is_of_no_use_gets_the_full_model_next_time(tmp_path, accident):
    config, notes = config_of(), Notes()
    happened = []

    def before(message):
        if not is_hello(message) and not happened:
            fields = message.content[FIELDS]
            if fields["round"] == 3 and client_of(message) == LOST:
                happened.append(accident(tmp_path))
        return

    grid = LocalGrid(config, tmp_path, fault=before)
    play(config, grid, notes)
    assert happened
    assert [(r, c) for r, c, _ in notes.failures] == [(3, LOST)]
    assert ACCIDENTS[accident] in notes.failures[0][2]
    assert contents_of(grid, LOST) == ["full", "payloads", "payloads", "full"]
    assert contents_of(grid, 0) == ["full", "payloads", "payloads", "payloads"]
    assert [record.participants for record in notes.records] == [8, 8, 7, 8]


def test_a_device_that_was_only_restarted_goes_on_where_it_was(tmp_path):
    config, moved = config_of(), tmp_path / "moved"

    def restart(message):
        if not is_hello(message) and message.content[FIELDS]["round"] == 3 and not moved.exists():
            shutil.copytree(tmp_path / "state", moved)  # other files, as after a reboot
            shutil.rmtree(tmp_path / "state")
            moved.rename(tmp_path / "state")
            moved.mkdir()
        return

    restarted = play(config, LocalGrid(config, tmp_path / "state", fault=restart))
    assert moved.exists()
    undisturbed = play(config, LocalGrid(config, tmp_path / "other"))
    assert restarted.outcome.server.model_hash() == undisturbed.outcome.server.model_hash()
    assert restarted.outcome.ledger.rows == undisturbed.outcome.ledger.rows


LAYOUT = initial(small())[0].layout


def hostile(attack, reply):
    """Let node 4 change its own update."""
    fields = reply.content[FIELDS]
    if fields["kind"] == "train-reply" and fields["client_id"] == 4:
        array = reply.content[ARRAYS]["update"]
        array.data = attack(fields, array.data, LAYOUT)
    return reply


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_run_goes_on_without_a_hostile_node(attack):
    # pitfall 12
    config, notes = small("rounds=3"), Notes()
    grid = LocalGrid(config, change=lambda reply: hostile(attack, reply))
    strategy = play(config, grid, notes)
    assert [(r, c) for r, c, _ in notes.failures] == [(1, 4), (2, 4), (3, 4)]
    for _, _, reason in notes.failures:
        assert reason.startswith("update refused: ")
        assert ATTACKS[attack] in reason
    assert [record.participants for record in notes.records] == [7, 7, 7]
    assert np.isfinite(strategy.outcome.server.weights).all()


def test_a_replayed_update_is_refused():
    config, notes, first = small("rounds=3"), Notes(), []

    def replay(fields, data, layout):
        if not first:
            first.append((dict(fields), data))
        fields.update(first[0][0])
        return first[0][1]

    play(config, LocalGrid(config, change=lambda reply: hostile(replay, reply)), notes)
    assert [(r, c) for r, c, _ in notes.failures] == [(2, 4), (3, 4)]
    assert "reply has round 1; asked for 2" in notes.failures[0][2]


def test_an_array_that_is_not_a_payload_is_refused():
    config, notes = small("rounds=1"), Notes()

    def change(reply):
        if (
            reply.content[FIELDS]["kind"] == "train-reply"
            and reply.content[FIELDS]["client_id"] == 4
        ):
            reply.content[ARRAYS]["update"] = Array(np.zeros(3, np.float32))
        return reply  # fmt: skip

    play(config, LocalGrid(config, change=change), notes)
    assert [(r, c) for r, c, _ in notes.failures] == [(1, 4)]
