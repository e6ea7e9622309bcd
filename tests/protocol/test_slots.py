"""Slots and the homes in them: how often a file is looked at, and writes that end too early."""

import os

import numpy as np
import pytest

from fedsbc import state_slot
from fedsbc.shared_weights import SharedWeights
from fedsbc.state import ClientState
from fedsbc.state_files import FileHome
from fedsbc.state_slot import Slot

RUN = "0123456789abcdef"
EMPTY = np.zeros(0, np.float32)


def state(round, size=1000):
    arrays = {"residual": np.full(size, round, np.float32), "pending": np.zeros(7, np.uint8)}
    return ClientState(RUN, round, round - 1, arrays)


def residual(home, before_round):
    found = home.load(before_round)
    return None if found is None else (found.round, set(found.arrays["residual"].tolist()))


@pytest.fixture
def calls(monkeypatch):
    """The system calls on files, in order."""
    seen = []
    for name in ("stat", "pwritev", "fdatasync"):
        real = getattr(os, name)

        def counted(*given, name=name, real=real, **named):
            seen.append(name)
            return real(*given, **named)

        monkeypatch.setattr(os, name, counted)
    return seen


@pytest.mark.parametrize("durable", [False, True])
def test_a_round_looks_once_at_each_file_and_flushes_before_and_after_it_counts(
    tmp_path, calls, durable
):
    home = FileHome(tmp_path, RUN, 0, durable=durable)
    for round in (1, 2):
        home.load(round)
        home.save(state(round))
    calls.clear()
    home.load(3)
    assert calls == ["stat", "stat"]
    home.save(state(3))
    flush = ["fdatasync"] * durable
    assert calls[2:] == ["pwritev", *flush, "pwritev", *flush]


def test_what_another_process_wrote_is_found(tmp_path):
    here, there = FileHome(tmp_path, RUN, 0), FileHome(tmp_path, RUN, 0)
    for round in range(1, 9):
        home, size = (here, 1000) if round % 2 else (there, 1000 * round)  # a new file, at times
        assert residual(home, round) == (None if round == 1 else (round - 1, {round - 1}))
        home.save(state(round, size))


def test_a_save_of_another_round_than_the_load_looks_again(tmp_path):
    here, there = FileHome(tmp_path, RUN, 0), FileHome(tmp_path, RUN, 0)
    here.load(1)
    there.save(state(1))
    there.save(state(2))
    here.save(state(3))
    assert residual(here, 3) == (2, {2})
    assert residual(here, 4) == (3, {3})


def test_a_write_that_dies_spoils_only_the_slot_that_nobody_needs(tmp_path, monkeypatch):
    home = FileHome(tmp_path, RUN, 0)
    home.save(state(1))
    home.save(state(2))
    real = os.pwritev

    def dies(file, parts, offset):
        real(file, [bytes(parts[0]), bytes(parts[1])[:100]], offset)
        raise OSError(5, "the disk fails")

    home.load(3)
    monkeypatch.setattr(os, "pwritev", dies)
    with pytest.raises(OSError, match="fails"):
        home.save(state(3))
    monkeypatch.setattr(os, "pwritev", real)
    for view in (home, FileHome(tmp_path, RUN, 0)):
        assert residual(view, 9) == (2, {2})
    home.save(state(3))
    assert residual(home, 4) == (3, {3})


def test_system_calls_may_write_a_part_only(tmp_path, monkeypatch):
    real = os.pwritev
    monkeypatch.setattr(
        os, "pwritev", lambda file, parts, at: real(file, [b"".join(map(bytes, parts))[:997]], at)
    )
    monkeypatch.setattr(state_slot, "MOST_PARTS", 3)
    arrays = {f"a{i}": np.arange(i * 100, dtype=np.float64).reshape(i, 100) for i in range(9)}
    Slot(tmp_path / "s").write({}, arrays)
    slot = Slot(tmp_path / "s")
    found = slot.arrays(slot.header())
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_shared_weights_are_parsed_once_and_never_returned_under_an_old_version(tmp_path):
    server, reader = SharedWeights(tmp_path), SharedWeights(tmp_path)
    for version in range(6):
        size = 5 if version < 3 else 50_000  # from here on other files
        server.publish(version, np.full(size, version, np.float32), EMPTY)
        first, again = reader.read(version), reader.read(version)
        assert first[0] is again[0]
        assert set(first[0].tolist()) == {version}
        if version > 0:
            assert set(reader.read(version - 1)[0].tolist()) == {version - 1}
            assert set(reader.read(version)[0].tolist()) == {version}
        if version > 1:
            assert reader.read(version - 2) is None
