"""Bad input through the real command line: one clear line, a non-zero exit, no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from sims import cli

GOOD = """\
name: small
data: {name: mnist-5k}
model: {name: mlp}
clients: {count: 10, local_steps: 1, batch_size: 20, optimizer: {name: sgd, lr: 0.05}}
rounds: 1
upstream: {name: sbc, density: 0.01}
engine: {actors: 1}
"""

BAD = {
    "a missing file": (["nowhere.yaml"], None, ["nowhere.yaml", "there is no such file"]),
    "not yaml": (["a.yaml"], "name: [a\n", ["a.yaml:2"]),
    "not a mapping": (["a.yaml"], "- name\n", ["a.yaml", "a mapping"]),
    "an unknown key": (
        ["a.yaml"],
        GOOD.replace("density", "desnity"),
        ["upstream.desnity", "given 0.01", "did you mean `density`?"],
    ),
    "a duplicate key": (["a.yaml"], GOOD + "rounds: 2\n", ["a.yaml:8", "duplicate key `rounds`"]),
    "a wrong type": (
        ["a.yaml"],
        GOOD.replace("rounds: 1", "rounds: many"),
        ["rounds", 'given "many"', "a whole number"],
    ),
    "density 0": (["a.yaml", "--set", "upstream.density=0"], GOOD, ["given 0", "> 0 and <= 1"]),
    "density 1.5": (["a.yaml", "--set", "upstream.density=1.5"], GOOD, ["given 1.5", "<= 1"]),
    "density NaN": (["a.yaml", "--set", "upstream.density=.nan"], GOOD, ["given NaN", "<= 1"]),
    "participation 0": (["a.yaml", "--set", "participation=0"], GOOD, ["given 0", "> 0 and <= 1"]),
    "participation 2": (["a.yaml", "--set", "participation=2"], GOOD, ["given 2", "<= 1"]),
    "participants 20": (
        ["a.yaml", "--set", "participants=20"],
        GOOD,
        ["`participants` is 20", "`clients.count` is 10"],
    ),
    "rounds -1": (["a.yaml", "--set", "rounds=-1"], GOOD, ["rounds", "given -1", "> 0"]),
    "an override that is none": (["a.yaml", "--set", "rounds"], GOOD, ["expected key.path=value"]),
    "more clients than samples": (
        ["a.yaml", "--set", "clients.count=100000"],
        GOOD,
        ["100000", "samples"],
    ),
    "an unknown compressor": (
        ["a.yaml", "--set", "upstream.name=sbd"],
        GOOD,
        ["upstream.name", "'sbd'", "did you mean 'sbc'?", "known:", "none", "topk"],
    ),
    "an unknown model": (
        ["a.yaml", "--set", "model.name=lenet"],
        GOOD,
        ["'lenet'", "lenet5-caffe"],
    ),
    "an unknown data set": (
        ["a.yaml", "--set", "data.name=mnist5"],
        GOOD,
        ["'mnist5'", "mnist-5k"],
    ),
    "more actors than fit": (
        ["a.yaml", "--set", "engine.actors=1000"],
        GOOD,
        ["engine.actors: 1000", "fit", "each"],
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_line_and_no_run_folder(case, folder, capsys):
    arguments, text, expected = BAD[case]
    if text is not None:
        Path("a.yaml").write_text(text)
    assert cli.run(["run", *arguments]) == 1
    assert_one_line(capsys.readouterr().err, expected)
    assert not Path("runs/small").exists()


def test_an_output_folder_that_exists(folder, capsys):
    Path("a.yaml").write_text(GOOD)
    Path("runs/small").mkdir(parents=True)
    assert cli.run(["run", "a.yaml"]) == 1
    assert_one_line(capsys.readouterr().err, ["runs/small", "exists already", "--out"])
    assert list(Path("runs/small").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere", "--out", "r.html"], ["nowhere", "not a folder"]),
        (["empty", "--out", "r.html"], ["empty", "config.yaml"]),
        (["empty", "--out", "empty.html"], ["empty.html: is a folder", "report.html"]),
        (["empty", "--out", "a.yaml"], ["a.yaml", "ends in .html"]),
    ],
)
def test_bad_input_of_compare(folder, capsys, arguments, expected):
    Path("empty").mkdir()
    Path("empty.html").mkdir()
    assert cli.run(["compare", *arguments]) == 1
    assert_one_line(capsys.readouterr().err, expected)
    assert not Path("r.html").exists()


@pytest.mark.parametrize("case", ["an unknown key", "density NaN"])
def test_the_process_ends_so_too(case, folder):
    arguments, text, expected = BAD[case]
    Path("a.yaml").write_text(text)
    ended = subprocess.run(
        [sys.executable, "-m", "sims.cli", "run", *arguments], capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert_one_line(ended.stderr, expected)


def assert_one_line(stderr, expected):
    assert len(stderr.splitlines()) == 1, stderr
    assert stderr.startswith("fedsbc: ")
    assert "Traceback" not in stderr
    assert [part for part in expected if part not in stderr] == [], stderr
