"""A full disk, a folder without permission: one line, and the previous generation is whole."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from fedsbc.checkpoint import generations, save, writing
from fedsbc.errors import RunError
from fedsbc.state import ClientState
from fedsbc.state_files import FileHome
from tests.checkpoint.test_save import CLIENTS, FACTS, RUN, snapshot, train


@contextmanager
def refused(folder: Path, reason: str):
    """Expect that round 2 cannot be saved: one line, and round 1 stays as it was."""
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    with pytest.raises(RunError) as error:
        yield
    said = str(error.value)
    assert len(said.splitlines()) == 1
    assert reason in said
    assert "the checkpoint of round 2 cannot be written" in said
    assert "that of round 1 is whole" in said
    assert f"fedsbc resume {folder.parent}" in said
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    (generation,) = generations(folder)
    assert generation.damage() is None


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MB."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        # Only root may mount; another user cannot make a disk that is really full.
        pytest.skip("a file system of 1 MB cannot be mounted here")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


@pytest.mark.parametrize("full_at", ["the states", "the server"])
def test_a_full_disk_is_one_line_and_the_previous_generation_is_whole(
    tmp_path, small_disk, full_at
):
    states, folder = tmp_path / "states", small_disk / "run/checkpoint"
    folder.parent.mkdir()
    train(states, 1, [0])
    save(folder, snapshot(1), FACTS, states)
    if full_at == "the states":
        many = {"residual": np.zeros(400_000, np.float32)}
        FileHome(states, RUN, 0).save(ClientState(RUN, 2, 1, many))
    else:
        (small_disk / "filler").write_bytes(bytes(2**20 - 40 * 4096))
        fill(small_disk / "rest")
    with refused(folder, "No space left on device"):
        save(folder, snapshot(2), FACTS, states)


def test_no_space_in_the_middle_of_a_state(tmp_path, monkeypatch):
    states, folder = tmp_path / "states", tmp_path / "checkpoint"
    train(states, 1, range(CLIENTS))
    save(folder, snapshot(1), FACTS, states)
    train(states, 2, range(CLIENTS))

    def full(state, target):
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(writing, "copy_state", full)
    with refused(folder, "No space left on device"):
        save(folder, snapshot(2), FACTS, states)


@pytest.fixture
def open_folder():
    """A folder that every user may look into."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_folder_without_write_permission_is_one_line(open_folder):
    states, folder = open_folder / "states", open_folder / "run/checkpoint"
    folder.parent.mkdir()
    train(states, 1, range(CLIENTS))
    save(folder, snapshot(1), FACTS, states)
    with refused(folder, "Permission denied"):
        folder.chmod(0o555)
        user = os.geteuid()
        if user == 0:  # root may write anywhere: be someone else for a while
            os.seteuid(65534)
        try:
            save(folder, snapshot(2), FACTS, states)
        finally:
            os.seteuid(user)
            folder.chmod(0o755)
