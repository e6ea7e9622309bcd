"""What README and CONTRIBUTING say works: commands, keys, the example scheme."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fedsbc.config.components import COMPONENTS
from fedsbc.config.describe import all_paths
from fedsbc.config.schema import Config, DataConfig
from fedsbc.models.base import ModelOptions

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
SMALL = ["rounds=1", "clients.count=10", "model.name=mlp", "engine.actors=1"]


def blocks(text, language):
    """Return the code blocks of a language, without their indent."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [re.sub(f"^{indent}", "", body, flags=re.MULTILINE) for indent, body in found]


def commands(text):
    lines = "".join(blocks(text, "bash")).splitlines()
    return [shlex.split(line, comments=True) for line in lines]


def test_every_command_is_of_a_kind_that_is_tested():
    programs = {words[0] for words in commands(README) + commands(CONTRIBUTING)}
    assert programs == {"make", "pip", "cp", "fedsbc"}


def test_make_knows_its_targets():
    makefile = (ROOT / "Makefile").read_text()
    for words in commands(README) + commands(CONTRIBUTING):
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), words


def test_extras_are_those_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert [words for words in commands(README) if words[0] == "pip"]
    for name in [*re.findall(r"\.\[(\w+)\]", README), *re.findall(r"^\| `(\w+)` \| .*`", README)]:
        assert name in extras


def test_the_commands_of_the_readme_run(tmp_path):
    """Run them one after the other, each run made small; then read the ledger as it says."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    small = [word for setting in SMALL for word in ("--set", setting)]
    for program, *arguments in commands(README):
        if program == "fedsbc":
            more = small if arguments[0] == "run" else []
            run([sys.executable, "-m", "sims.cli", *arguments, *more], tmp_path)
        elif program == "cp":
            run([program, *arguments], tmp_path)
    assert sorted(path.name for path in (tmp_path / "runs").glob("*/summary.json"))
    assert (tmp_path / "runs/report.html").stat().st_size > 10_000
    for snippet in blocks(README, "python"):
        assert "bits up in" in run([sys.executable, "-c", snippet], tmp_path)


def run(command, folder):
    """Run a command in a folder; return what it printed."""
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"}
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def test_the_readme_lists_every_key():
    table = README.partition("| key | default | meaning |")[2].partition("\n\n")[0]
    listed = set(
        re.findall(r"`([a-z_.]+)`", "".join(re.findall(r"^\|[^|]*\|", table, re.MULTILINE)))
    )
    readers = {("data",): DataConfig, ("model",): ModelOptions}
    paths = {".".join(path) for path in all_paths(Config, readers)}
    choosers = {".".join((*c.path, c.chooser)) for c in COMPONENTS}
    sections = {path for path in paths if any(p.startswith(path + ".") for p in paths)}
    elsewhere = ("upstream.", "downstream.", "clients.optimizer.", "clients.schedule.", "model.")
    assert {p for p in paths - sections - listed if not p.startswith(elsewhere)} == set()
    assert listed - paths - choosers == set()


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_links_lead_somewhere(text):
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_the_example_scheme_is_a_compressor():
    from fedsbc.testing import check_compressor

    imports = """
from typing import ClassVar, Literal
import numpy as np
from fedsbc.arrays import Vector
from fedsbc.compressors import CompressorOptions, SparseOptions, State, check_vector
from fedsbc.layout import Layout
from fedsbc.selection import num_to_keep
from fedsbc.updates import SparseFloatBlock, Update
"""
    (example,) = blocks(CONTRIBUTING, "python")
    names = {}
    exec(imports + example, names)
    check_compressor(names["First"](names["FirstOptions"](density=0.05, scope="tensor")))
