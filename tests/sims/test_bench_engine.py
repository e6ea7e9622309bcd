"""The benchmark of engines: figures from outside, and what is said of contenders that fail."""

import json
import sys

import pytest
import typer
from typer.testing import CliRunner

from fedsbc import config as configs
from fedsbc.errors import ConfigError, RunError
from sims.bench import contenders, engine
from sims.bench.engine import engine_command, ratios
from sims.bench.jobs import jobs, write_data
from sims.bench.watch import Measured, proportional_bytes, watch
from sims.deploy.processes import Processes

LOOP = """
import sys, time
time.sleep(0.3)
for _ in range(int(sys.argv[2])):
    with open(sys.argv[1], "a") as log:
        log.write("round\\n")
    time.sleep(0.2)
"""


def figures(round_s, **others):
    return Measured(
        **{"round_s": round_s, "startup_s": 1.0, "peak_bytes": 1, "memory_bytes": []} | others
    )


def watched(tmp_path, program, rounds=3, timeout_s=30.0):
    import time

    log = tmp_path / "log"
    with Processes(tmp_path, {}) as processes:
        started = time.monotonic()
        processes.start("it", [sys.executable, "-c", program, str(log), str(rounds)])
        return watch(processes, "it", started, log, 3, timeout_s)


def test_rounds_start_up_and_memory_are_seen_from_outside(tmp_path, monkeypatch):
    # The first sample may fall between fork and exec, when there is next to nothing to see.
    monkeypatch.setattr("sims.bench.watch.MEMORY_EVERY_S", 0.0)
    monkeypatch.setattr("sims.bench.watch.MEMORY_SHARE", 1.0)
    measured = watched(tmp_path, LOOP)
    assert measured.round_s >= 0.19
    assert measured.startup_s >= 0.05
    assert measured.peak_bytes > 2**20


def test_a_contender_that_ends_early_is_an_error_with_its_last_line(tmp_path):
    with pytest.raises(RunError, match="it: 1 of 3 rounds"):
        watched(tmp_path, LOOP, rounds=1)
    with pytest.raises(RunError, match="it: 1 of 3 rounds: ZeroDivisionError"):
        watched(tmp_path, "print(1 / 0)")


def test_a_contender_that_hangs_is_given_up(tmp_path):
    with pytest.raises(RunError, match=r"did not end within 0\.5 s"):
        watched(tmp_path, "import time; time.sleep(100)", timeout_s=0.5)


def test_memory_of_a_process_that_is_gone_is_nothing():
    assert proportional_bytes(2**22 + 1) == 0


def test_ratios_are_taken_pair_by_pair():
    runs = {
        "sbc": [figures(2.0), figures(3.0), figures(9.0)],
        "bare": [figures(1.0), figures(3.0), figures(3.0)],
    }
    (row,) = ratios(runs)
    assert (row["ours"], row["rival"]) == ("sbc", "bare")
    assert (row["median"], row["lowest"], row["highest"]) == (2.0, 1.0, 3.0)


@pytest.mark.parametrize("name", ["A1", "A2", "A3"])
def test_a_job_is_the_same_for_all(tmp_path, name):
    job = jobs(400, None)[name]
    (tmp_path / "config.yaml").write_text(
        job.as_config(tmp_path / "data.npz", contenders.OURS["sbc"])
    )
    config = configs.load(tmp_path / "config.yaml")
    rival = job.for_rivals(tmp_path / "data.npz", tmp_path / "log")
    assert config.cohort_size == rival["cohort"] == {"A1": 40, "A2": 400, "A3": 40}[name]
    assert config.clients.count == rival["clients"] == 400
    assert config.clients.local_steps == rival["local_steps"] == 10
    assert config.clients.batch_size == rival["batch_size"] == 10
    assert config.engine.actors == rival["workers"] == 2


def test_the_models_of_the_rivals_are_ours():
    from fedsbc import models
    from sims.bench.runtimes import task

    for name in ("mlp", "lenet5-caffe"):
        ours = models.build(models.options_for(name)(), 0)
        theirs = task.module({"model": name})
        shapes = [tuple(p.shape) for p in theirs.parameters()]
        assert [tuple(p.shape) for p in ours.parameters()] == shapes


def test_who_fails_is_left_out_and_it_is_said(monkeypatch, tmp_path):
    def fails(job, where):
        raise RunError("run: no such thing")

    table = {"sbc": lambda job, where: figures(2.0), "bare": fails}
    monkeypatch.setattr(contenders, "contenders", lambda against, python: table)
    monkeypatch.setattr("sims.bench.jobs.write_data", lambda path: None)
    app = typer.Typer()
    app.command()(engine_command)
    file = tmp_path / "bench.json"
    options = ["--job", "A3", "--against", "bare", "--pairs", "2", "--json", str(file)]
    result = CliRunner().invoke(app, options, catch_exceptions=False)
    assert "A3: bare is left out: run: no such thing" in result.output
    job = json.loads(file.read_text())["jobs"]["A3"]
    assert [run["round_s"] for run in job["runs"]["sbc"]] == [2.0, 2.0]
    assert job["ratios"] == []


def test_an_unknown_rival_is_named():
    with pytest.raises(
        ConfigError, match="--against: expected one of bare, flower, pfl, got 'ray'"
    ):
        engine._checked("--against", ["ray"], engine.RIVALS)


@pytest.mark.slow
def test_the_bare_loop_and_ours_really_run(tmp_path):
    write_data(tmp_path / "data.npz")
    job = jobs(20, 3)["A3"]
    for name, run in contenders.contenders(["bare", "flower"], None).items():
        with contenders.place(tmp_path / "data.npz") as where:
            assert run(job, where).round_s > 0, name
