"""Generations on the disk: written so that a kill at any instant leaves one that is whole."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from fedsbc.checkpoint import Snapshot, generations, read_snapshot, restore_states, save, writing
from fedsbc.checkpoint import generation as generation_module
from fedsbc.ledger import Ledger, LedgerRow
from fedsbc.records import RoundRecord
from fedsbc.state import ClientState
from fedsbc.state_files import FileHome

RUN = "0123456789abcdef"
CLIENTS = 6
FACTS = {"config": {"name": "x"}, "environment": {"cpu": "y"}}


def snapshot(round: int) -> Snapshot:
    draws = np.random.default_rng(round)
    row = LedgerRow(round, 1, "up", "train", 3, 5, 6, 7, 0, 18, 99, 320)
    return Snapshot(
        run_id=RUN,
        round=round,
        num_aborted=round % 3,
        members=[{"client_id": i, "num_samples": 9, "base_version": round} for i in range(CLIENTS)],
        layouts=("a" * 16, "b" * 16),
        arrays={
            "weights": draws.standard_normal(10).astype(np.float32),
            "buffers": np.zeros(0, np.float32),
            "state.count": np.full((), round, np.int64),
            "history.1": np.frombuffer(b"", np.uint8),
            "history.2": np.frombuffer(b"payload", np.uint8),
        },
        ledger=Ledger([row] * round),
        records=[
            RoundRecord(r, None, 0.5, None, 1, 2, 0.0, 0.1, 3, 0) for r in range(1, round + 1)
        ],
    )


def train(states: Path, round: int, clients) -> None:
    """Let clients store the states of a round."""
    for client in clients:
        arrays = {"residual": np.full(1000, 100 * round + client, np.float32)}
        FileHome(states, RUN, client).save(ClientState(RUN, round, round - 1, arrays))


def stored(folder: Path, before_round: int = 10**6) -> dict[int, tuple[int, float]]:
    """Return the round and the first residual of each client's state."""
    found = {}
    for client in range(CLIENTS):
        state = FileHome(folder, RUN, client).load(before_round)
        if state is not None:
            found[client] = (state.round, float(state.arrays["residual"][0]))
    return found


def same(a: Snapshot, b: Snapshot) -> bool:
    assert a.ledger.rows == b.ledger.rows
    assert a.arrays.keys() == b.arrays.keys()
    for name, array in a.arrays.items():
        other = b.arrays[name]
        assert (array.dtype, array.shape) == (other.dtype, other.shape)
        assert array.tobytes() == other.tobytes()
    plain = ("run_id", "round", "num_aborted", "members", "layouts")
    assert [getattr(a, name) for name in plain] == [getattr(b, name) for name in plain]
    return list(a.records) == list(b.records)


def test_what_was_saved_comes_back(tmp_path):
    states, folder = tmp_path / "states", tmp_path / "checkpoint"
    train(states, 1, range(CLIENTS))
    train(states, 2, [1, 3])
    train(states, 3, [3, 5])
    train(states, 4, [5, 1])  # of a round that is not closed: not in the checkpoint
    save(folder, snapshot(3), FACTS, states)
    (generation,) = generations(folder)
    assert generation.round == 3
    assert generation.damage() is None
    assert same(read_snapshot(generation.path), snapshot(3))
    restore_states(generation.path, tmp_path / "again")
    expected = {0: (1, 100), 1: (2, 201), 2: (1, 102), 3: (3, 303), 4: (1, 104), 5: (3, 305)}
    assert stored(tmp_path / "again") == expected
    train(tmp_path / "again", 4, [5, 1])
    assert stored(tmp_path / "again") == stored(states)


def test_a_copy_does_not_follow_the_slots_of_the_actors(tmp_path):
    states, folder = tmp_path / "states", tmp_path / "checkpoint"
    train(states, 1, range(CLIENTS))
    save(folder, snapshot(1), FACTS, states)
    for round in (2, 3, 4):
        train(states, round, range(CLIENTS))
    assert generations(folder)[0].damage() is None


def test_only_states_that_changed_are_written(tmp_path):
    states, folder = tmp_path / "states", tmp_path / "checkpoint"
    train(states, 1, range(CLIENTS))
    first = save(folder, snapshot(1), FACTS, states)
    assert (first.states_written, first.states_linked) == (CLIENTS, 0)
    train(states, 2, [4])
    second = save(folder, snapshot(2), FACTS, states)
    assert (second.states_written, second.states_linked) == (1, CLIENTS - 1)
    assert second.written_bytes < first.written_bytes - 4 * 4000
    new, old = (generation.path / "clients" for generation in generations(folder))
    linked = {c for c in os.listdir(new) if os.path.samefile(new / c, old / c)}
    assert linked == {f"client-{i:05d}.a" for i in (0, 1, 2, 3, 5)}
    costs = [json.loads(line) for line in (folder / "costs.jsonl").read_text().splitlines()]
    assert [(c["round"], c["states_written"]) for c in costs] == [(1, CLIENTS), (2, 1)]
    assert costs[1]["written_bytes"] + costs[1]["linked_bytes"] == pytest.approx(
        sum(f.stat().st_size for f in new.parent.rglob("*") if f.is_file()), abs=4096
    )


def test_two_generations_stay(tmp_path):
    folder = tmp_path / "checkpoint"
    for round in range(5):
        save(folder, snapshot(round), FACTS, None)
        kept = [generation.round for generation in generations(folder)]
        assert kept == [round, round - 1][: round + 1]
        assert {p.name for p in folder.iterdir()} == {f"round-{r:06d}" for r in kept} | {
            "costs.jsonl"
        }


def test_a_round_is_saved_once(tmp_path):
    assert save(tmp_path / "checkpoint", snapshot(2), FACTS, None) is not None
    assert save(tmp_path / "checkpoint", snapshot(2), FACTS, None) is None


class Killed(BaseException):
    """Ends a save as a kill does: nothing is cleaned up."""


class Steps:
    """Counts the steps of a save that change the disk, and dies before one of them."""

    def __init__(self, monkeypatch, die_before: int | None = None) -> None:
        self.count, self.die_before = 0, die_before
        for module, name in (
            (os, "link"),
            (os, "fsync"),
            (shutil, "rmtree"),
            (Path, "rename"),
            (Path, "mkdir"),
            (Path, "write_text"),
            (writing, "copy_state"),
        ):
            monkeypatch.setattr(module, name, self._counting(getattr(module, name)))

    def _counting(self, function):
        def step(*arguments, **options):
            if self.count == self.die_before:
                raise Killed
            self.count += 1
            return function(*arguments, **options)

        return step


def third_save(tmp_path: Path) -> tuple[Path, Path]:
    """Return folders in which two generations are saved and a third one is due."""
    states, folder = tmp_path / "states", tmp_path / "checkpoint"
    for round in (1, 2):
        train(states, round, range(round, CLIENTS))
        save(folder, snapshot(round), FACTS, states)
    train(states, 3, [0, 1])
    return states, folder


def test_a_kill_at_any_step_leaves_a_whole_generation(tmp_path, monkeypatch):
    # pitfall 20
    monkeypatch.setattr(generation_module, "NUM_THREADS", 1)
    for step in range(1000):
        (tmp_path / str(step)).mkdir()
        states, folder = third_save(tmp_path / str(step))
        with pytest.MonkeyPatch.context() as patch:
            Steps(patch, die_before=step)
            with suppress(Killed):
                save(folder, snapshot(3), FACTS, states)
                break
        check_after_a_kill(states, folder)
    assert step > 20, "every step of a save was the last one once"


def check_after_a_kill(states: Path, folder: Path) -> None:
    found = generations(folder)
    assert len(found) <= 2
    assert all(generation.damage() is None for generation in found)
    newest = found[0]
    assert newest.round in (2, 3)
    assert same(read_snapshot(newest.path), snapshot(newest.round))
    assert stored(newest.path / "clients") == stored(states, newest.round + 1)
    save(folder, snapshot(4), FACTS, states)  # what the kill left behind is no obstacle
    assert [generation.round for generation in generations(folder)] == [4, newest.round]
    assert not list(folder.glob(".*"))
    assert stored(generations(folder)[0].path / "clients") == stored(states)


@pytest.mark.parametrize(
    "name", ["manifest.json", "server.safetensors", "server.json", "rounds.jsonl", "clients/*3.a"]
)
@pytest.mark.parametrize("harm", ["truncated", "changed", "missing"])
def test_a_damaged_file_is_named_and_the_other_generation_is_whole(tmp_path, name, harm):
    states, folder = tmp_path / "states", tmp_path / "checkpoint"
    for round in (1, 2):
        train(states, round, range(CLIENTS))
        save(folder, snapshot(round), FACTS, states)
    new, old = generations(folder)
    (path,) = new.path.glob(name)
    data = path.read_bytes()
    if harm == "missing":
        path.unlink()
    else:
        middle = bytes([data[len(data) // 2] ^ 1])
        flipped = data[: len(data) // 2] + middle + data[len(data) // 2 + 1 :]
        path.write_bytes(data[:-1] if harm == "truncated" else flipped)
    if (name, harm) == ("manifest.json", "changed"):
        path.write_bytes(data.replace(b"fedsbc.checkpoint.v1", b"fedsbc.checkpoint.v9"))
    assert str(path) in new.damage()
    assert old.damage() is None


def test_a_state_that_was_cut_short_is_written_anew_not_linked(tmp_path):
    states, folder = tmp_path / "states", tmp_path / "checkpoint"
    train(states, 1, range(CLIENTS))
    save(folder, snapshot(1), FACTS, states)
    (generation,) = generations(folder)
    os.truncate(generation.path / "clients/client-00002.a", 100)
    cost = save(folder, snapshot(2), FACTS, states)
    assert (cost.states_written, cost.states_linked) == (1, CLIENTS - 1)
    assert generations(folder)[0].damage() is None


def test_a_disk_without_hard_links_gets_copies(tmp_path, monkeypatch):
    states, folder = tmp_path / "states", tmp_path / "checkpoint"
    train(states, 1, range(CLIENTS))
    save(folder, snapshot(1), FACTS, states)

    def refuse(*arguments):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert save(folder, snapshot(2), FACTS, states).states_written == CLIENTS
    assert generations(folder)[0].damage() is None
