"""Which homes stay mapped: those that were used last, within bounds on bytes and on files."""

import gc
import os
import resource
from pathlib import Path

import numpy as np
import pytest

from clients.homes import Homes, max_homes
from fedsbc.state import ClientState

RUN = "00112233aabbccdd"


def key(folder, client):
    return str(folder), RUN, client, False


def play(homes, folder, client, round, size=1000):
    """Load and save as a client's round does; return the residual that it started from."""
    home = homes.home(key(folder, client))
    state = home.load(round)
    residual = np.full(size, client * 1000 + round, np.float32)
    home.save(ClientState(RUN, round, arrays={"residual": residual}))
    return None if state is None else state.arrays["residual"]


def mapped_files(folder):
    return {
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if str(folder) in line
    }


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_a_home_that_stays_is_the_same_and_one_that_went_is_opened_again(tmp_path):
    homes = Homes(10**9, 2)
    first, _, again = (homes.home(key(tmp_path, client)) for client in (0, 1, 0))
    assert first is again
    homes.home(key(tmp_path, 2))  # 1 was used longest ago
    assert homes.home(key(tmp_path, 0)) is first
    assert len(homes) == 2


def test_states_are_those_that_were_saved_whatever_is_mapped(tmp_path):
    homes = Homes(300_000, 4)
    for round in (1, 2, 3):
        for client in range(10):
            started_from = play(homes, tmp_path, client, round)
            if round > 1:
                assert (started_from == client * 1000 + round - 1).all()


@pytest.mark.parametrize("size", [10, 50_000])
def test_mapped_bytes_stay_within_the_bound_and_one_home_more(tmp_path, size):
    homes, most = Homes(1_000_000, 10**6), 0
    for round in (1, 2):
        for client in range(30):
            play(homes, tmp_path, client, round, size)
            assert homes.num_bytes <= 1_000_000
            gc.collect()
            most = max(most, sum(os.path.getsize(f) for f in mapped_files(tmp_path)))
    one_home = 2 * os.path.getsize(tmp_path / "client-00000.a")
    assert 1_000_000 - one_home < most <= 1_000_000 + one_home


def test_a_home_larger_than_the_bound_works_alone(tmp_path):
    homes = Homes(1000, 10)
    for round in (1, 2, 3):
        for client in (0, 1):
            play(homes, tmp_path, client, round)
            gc.collect()
            assert len({Path(file).stem for file in mapped_files(tmp_path)}) <= 1
    assert len(homes) == 1
    assert (play(homes, tmp_path, 0, 4) == 3).all()


def test_views_outlive_the_home_that_gave_them(tmp_path):
    homes = Homes(10**9, 1)
    play(homes, tmp_path, 0, 1)
    residual = play(homes, tmp_path, 0, 2)
    for client in range(1, 5):
        play(homes, tmp_path, client, 1)
    assert (residual == 1).all()


def test_files_stay_within_the_number_of_homes(tmp_path):
    homes, before = Homes(10**9, 5), open_files()
    for client in range(40):
        play(homes, tmp_path, client, 1)
        play(homes, tmp_path, client, 2)
    gc.collect()
    assert open_files() <= before + 2 * 5


def test_the_limit_of_open_files_says_how_many_homes_there_may_be():
    def limited(soft):
        return max_homes(lambda which: (soft, soft))

    assert [limited(n) for n in (64, 1024, 2048, 10**6, resource.RLIM_INFINITY)] == [
        16,
        256,
        768,
        2048,
        2048,
    ]
