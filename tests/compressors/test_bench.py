"""The benchmark of compressors: it runs, counts what it says, and its rival does the same job."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from fedsbc import payload
from fedsbc.compressors.sbc import Sbc, SbcOptions
from fedsbc.errors import ConfigError
from sims.bench.compressors import compressors_command
from sims.bench.inputs import INPUTS
from sims.bench.layouts import layout_of
from sims.bench.measure import Bench


def run(*arguments):
    app = typer.Typer()
    app.command()(compressors_command)
    return CliRunner().invoke(app, [*arguments, "--repeats", "1"], catch_exceptions=False)


def test_the_command_prints_and_writes_what_it_measured(tmp_path):
    file = tmp_path / "bench.json"
    arguments = "--layout one --size 5000 --density 0.01 --density 0.1 --input all --scheme all"
    result = run(*arguments.split(), "--json", str(file))
    assert result.exit_code == 0
    rows = json.loads(file.read_text())["rows"]
    assert {row["input"] for row in rows} == set(INPUTS)
    assert {row["density"] for row in rows} == {None, 0.01, 0.1}
    assert len(result.output.splitlines()) == len(rows) + 2
    sbc = next(
        r for r in rows if (r["scheme"], r["density"], r["input"]) == ("sbc", 0.01, "normal")
    )
    assert sbc["num_kept"] == 50
    assert sbc["num_entries"] == 5000
    assert all(row[name] > 0 for row in rows for name in ("copy_ms", "step_ms", "decode_ms"))


@pytest.mark.parametrize("bad", ["--density 0", "--density 1.5", "--layout two", "--input nothing"])
def test_bad_arguments_are_one_clear_error(bad):
    with pytest.raises(ConfigError):
        run(*bad.split(), "--size", "10")


def test_layouts_have_their_known_sizes():
    assert (len(layout_of("resnet50", 0).tensors), layout_of("resnet50", 0).size) == (
        161,
        25_557_032,
    )
    assert layout_of("lenet5-caffe", 0).size == 431_080
    assert layout_of("one", 7).size == 7


def test_the_rival_sends_the_same_positions():
    layout = layout_of("lenet5-caffe", 0)
    vector = INPUTS["normal"](np.random.default_rng(2), layout.size)
    bench = Bench(Sbc(SbcOptions(density=0.01)), layout, vector)
    np.copyto(bench.work, bench.delta)
    bench.step()
    ours = payload.decode(bench.data, layout)
    np.copyto(bench.work, bench.delta)
    theirs = payload.decode(bench.torch_step(), layout)
    for one, other in zip(ours.blocks, theirs.blocks, strict=True):
        assert one.positions.tolist() == other.positions.tolist()
        assert one.mean == pytest.approx(other.mean, rel=1e-6)
