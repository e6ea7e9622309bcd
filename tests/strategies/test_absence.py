"""What an absent client holds stays as it is, whatever the order in which others arrive."""

import hashlib
from itertools import pairwise

import pytest

import clients.train as client_train
from fedsbc.state_files import FileHome
from fedsbc.state_slot import Slot
from tests.experiments import play, small
from tests.local_grid import LocalGrid, SharingGrid

SEEN = (1, 5, 6, 17)
"""Rounds of client 0: away for 3, 0 and 10 rounds."""


@pytest.fixture
def config(tmp_path):
    lines = [f"0,{round},{round}" for round in SEEN] + [f"{i},1,17" for i in range(1, 8)]
    path = tmp_path / "trace.csv"
    path.write_text("client_id,first_round,last_round\n" + "\n".join(lines) + "\n")
    return small("rounds=17", f"availability={{kind: trace, trace: {path}}}")


def sha256(array) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def residuals(folder) -> dict[int, str]:
    """Return the hash of every client's residual."""
    run_ids = {Slot(path).header()["run_id"] for path in folder.glob("client-*.a")}
    (run_id,) = run_ids
    states = {c: FileHome(folder, run_id, c).load(10**6) for c in range(8)}
    return {c: sha256(state.arrays["residual"]) for c, state in states.items()}


@pytest.mark.parametrize("engine", [LocalGrid, SharingGrid])
def test_pitfall_12_a_residual_after_absences_is_the_one_before(
    tmp_path, monkeypatch, config, engine
):
    started, left = {}, {}
    settle, compress = client_train.settled, client_train.compress

    def watched_settle(request, state, layout):
        found = settle(request, state, layout)
        if request.client_id == 0 and found is not None:
            started[request.round] = sha256(found)
        return found

    def watched_compress(*args, **options):
        compressed = compress(*args, **options)
        last_residual.append(sha256(compressed.residual))
        return compressed

    last_residual: list[str] = []
    monkeypatch.setattr(client_train, "settled", watched_settle)
    monkeypatch.setattr(client_train, "compress", watched_compress)

    def note(reply):
        fields = dict(reply.content["fedsbc"])
        if fields["kind"] == "train-reply" and fields["client_id"] == 0:
            left[fields["round"]] = last_residual[-1]
        return reply

    play(config, engine(config, tmp_path / "states", change=note))
    assert list(left) == list(SEEN)
    assert started == {later: left[earlier] for earlier, later in pairwise(SEEN)}
    assert len(set(left.values())) == len(SEEN)


def test_pitfall_12_and_so_are_all_residuals_in_any_order_of_arrival(tmp_path, config):
    found = []
    for order in range(3):
        folder = tmp_path / str(order)
        play(config, SharingGrid(config, folder, order=order))
        found.append(residuals(folder))
    assert found[0] == found[1] == found[2]
    assert len(set(found[0].values())) == 8
