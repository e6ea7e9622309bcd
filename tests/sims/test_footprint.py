"""What a run takes from its machine: memory and files that do not grow, threads that fit."""

import contextlib
import os
import tempfile
import time
from pathlib import Path
from statistics import mean

import pytest
import torch
from ray._private.node import Node

from clients.worker import Worker
from fedsbc.config import Config
from sims.bench.watch import proportional_bytes
from sims.ray_private import UNUSED, only_what_a_run_needs
from sims.resources import fit_actors, this_machine
from tests.experiments import small
from tests.sims.test_engine import session_pids, start


def memory_by_round(out: Path, *overrides: str, of_all: bool) -> list[tuple[int, int]]:
    """Run the small experiment; return (rounds done, bytes) of all its processes or its driver."""
    process, samples, log = start(out, *overrides), [], out / "rounds.jsonl"
    while process.poll() is None:
        done = log.read_bytes().count(b"\n") if log.exists() else 0
        pids = session_pids(process.pid) if of_all else [process.pid]
        samples.append((done, sum(map(proportional_bytes, pids))))
        time.sleep(0.02)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return samples


def mean_between(samples: list[tuple[int, int]], first: int, last: int) -> float:
    """Return the mean bytes from one round to another."""
    return mean(num_bytes for done, num_bytes in samples if first <= done < last)


def test_ray_starts_only_what_a_run_needs():
    """Whatever Ray we have knows the parts that are left out, and knows them again afterwards."""
    methods = [getattr(Node, name) for name in UNUSED]
    with only_what_a_run_needs():
        assert [getattr(Node, name)(None) for name in UNUSED] == [None] * len(UNUSED)
    assert [getattr(Node, name) for name in UNUSED] == methods


def test_a_run_has_no_dashboard_and_no_monitor(tmp_path):
    process, seen = start(tmp_path / "run"), set()
    while process.poll() is None:
        for name in (b"gcs_server", b"dashboard.py", b"monitor.py"):
            if session_pids(process.pid, name):
                seen.add(name)
        time.sleep(0.02)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert seen == {b"gcs_server"}


def bytes_in(folder: Path) -> int:
    """Return the bytes of all files in a folder; some come and go meanwhile."""
    total = 0
    for root, _, names in os.walk(folder):  # it passes over folders that have gone
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(root, name)).st_size
    return total


def test_rays_folder_stays_small_and_goes(tmp_path, monkeypatch):
    # pitfall 3
    with tempfile.TemporaryDirectory(prefix="f") as temporary:  # sockets need a short path
        monkeypatch.setenv("TMPDIR", temporary)
        process, sizes = start(tmp_path / "run", "rounds=60"), []
        while process.poll() is None:
            sizes.append(bytes_in(Path(temporary)))
            time.sleep(0.1)
        _, errors = process.communicate()
        assert process.returncode == 0, errors
        assert 0 < max(sizes) < 5e6, max(sizes)
        assert list(Path(temporary).iterdir()) == []


@pytest.mark.slow
def test_sixty_rounds_of_four_hundred_clients_do_not_grow(tmp_path):
    # pitfall 1
    overrides = ["clients.count=400", "participation=0.1", "rounds=60", "evaluate.every=20"]
    samples = memory_by_round(tmp_path / "run", *overrides, of_all=True)
    assert mean_between(samples, 50, 60) <= 1.05 * mean_between(samples, 10, 20)


@pytest.mark.slow
def test_two_hundred_rounds_of_large_messages_do_not_grow_the_server(tmp_path):
    # pitfall 6: 1,311,760 parameters, 5.2 MB a message each way, four clients a round
    overrides = [
        "model.hidden=1650",
        "clients.count=4",
        "clients.local_steps=1",
        "upstream={name: none}",
        "rounds=200",
        "evaluate.every=200",
        "transport=wire",
    ]
    samples = memory_by_round(tmp_path / "run", *overrides, of_all=False)
    assert mean_between(samples, 180, 200) <= 1.05 * mean_between(samples, 20, 40)


def test_torch_threads_times_actors_are_at_most_the_cores():
    # pitfall 4
    config: Config = small()
    Worker(config, None)
    num_threads = torch.get_num_threads()
    cores = len(os.sched_getaffinity(0))
    (num_actors,) = fit_actors(config, [this_machine(config)], "cpu")
    assert num_threads * num_actors <= cores
