"""One contract for every home of client state."""

from pathlib import Path

import numpy as np
import pytest
from flwr.app import RecordDict

from clients.context_home import ContextHome
from fedsbc.shared_weights import SharedWeights
from fedsbc.state import ClientState, StateHome
from fedsbc.state_files import FileHome
from fedsbc.state_slot import Slot

RUN = "0123456789abcdef"


@pytest.fixture(params=["files", "durable-files", "context"])
def make_home(request, tmp_path: Path):
    records = RecordDict()

    def make(run_id: str = RUN) -> StateHome:
        if request.param == "context":
            return ContextHome(records, run_id)
        return FileHome(tmp_path, run_id, 3, durable=request.param == "durable-files")

    return make


def state(round: int, size: int = 1000, run_id: str = RUN) -> ClientState:
    rng = np.random.default_rng(round)
    arrays = {
        "residual": rng.standard_normal(size).astype(np.float32),
        "pending": rng.integers(0, 255, 17 * round).astype(np.uint8),
        "scalar": np.float64(round) * np.ones(()),
    }
    return ClientState(run_id, round, base_version=round - 1, arrays=arrays)


def same(a: ClientState | None, b: ClientState) -> bool:
    assert a is not None
    assert (a.run_id, a.round, a.base_version) == (b.run_id, b.round, b.base_version)
    assert a.arrays.keys() == b.arrays.keys()
    for name, array in b.arrays.items():
        assert a.arrays[name].dtype == array.dtype
        assert a.arrays[name].shape == array.shape
        assert a.arrays[name].tobytes() == array.tobytes()
    return True


def test_an_empty_home_has_no_state(make_home):
    assert make_home().load(1) is None


def test_what_was_saved_is_found_by_another_process_view(make_home):
    make_home().save(state(4))
    assert same(make_home().load(5), state(4))


def test_a_repeated_round_starts_from_the_same_state(make_home):
    home = make_home()
    home.save(state(2))
    home.save(state(7))
    assert same(home.load(7), state(2))
    home.save(state(7, size=10))
    assert same(home.load(7), state(2))
    assert same(home.load(8), state(7, size=10))


def test_state_of_another_run_is_never_used(make_home):
    make_home().save(state(2))
    other = make_home("f" * 16)
    assert other.load(9) is None
    other.save(state(1, run_id="f" * 16))
    assert same(other.load(9), state(1, run_id="f" * 16))


def test_states_that_grow_and_shrink(make_home):
    home = make_home()
    for round, size in [(1, 10), (2, 100_000), (3, 5), (4, 100_000), (5, 200_000)]:
        home.save(state(round, size))
        assert same(home.load(round + 1), state(round, size))
        if round > 1:
            assert home.load(round).round == round - 1


def test_loaded_arrays_cannot_be_written(make_home):
    make_home().save(state(1))
    with pytest.raises(ValueError, match="read-only"):
        make_home().load(2).arrays["residual"][0] = 1


def test_a_write_that_was_cut_off_leaves_the_other_slot(tmp_path: Path):
    home = FileHome(tmp_path, RUN, 0)
    home.save(state(1))
    home.save(state(2))
    newest = next(p for p in tmp_path.iterdir() if Slot(p).header()["round"] == 2)
    with newest.open("r+b") as file:  # as a kill in the middle of a write leaves it
        file.write(b"\0\0\0\0")
    assert same(FileHome(tmp_path, RUN, 0).load(9), state(1))


def test_shared_weights_keep_two_versions(tmp_path: Path):
    shared, reader = SharedWeights(tmp_path), FileHome(tmp_path, RUN, 0)
    empty = np.zeros(0, np.float32)
    for version in range(4):
        shared.publish(version, np.full(5, version, np.float32), empty)
        weights, buffers = reader.base_weights(version)
        assert weights.tolist() == [version] * 5
        assert buffers.size == 0
    assert reader.base_weights(2)[0].tolist() == [2.0] * 5
    assert reader.base_weights(1) is None
