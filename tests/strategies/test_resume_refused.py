"""What a resume refuses, with the reason, and what it tells."""

import json
import os
import shutil
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict

from fedsbc import environment
from fedsbc.checkpoint import generations, plan_resume
from fedsbc.checkpoint.resuming import _differing_versions
from fedsbc.config import to_json
from fedsbc.config.yaml_text import dump, parse
from fedsbc.errors import ConfigError, RunError
from fedsbc.run_folder import RunFolder
from sims.flower_private import RUN_ID
from strategies.app import app
from tests.experiments import small
from tests.local_grid import FIRST_NODE
from tests.strategies.test_resume import begin, check_same, resume


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a run that ended after four rounds."""
    out = tmp_path_factory.mktemp("ended") / "run"
    begin(small("rounds=4", "checkpoint.every=2", "clients.local_steps=1"), out)
    return out


@pytest.fixture
def run(ended, tmp_path):
    """A copy of it, hard links between its generations kept."""
    out = tmp_path / "run"
    shutil.copytree(ended, out)
    return out


def change(out: Path, **sections) -> None:
    path = out / "config.yaml"
    tree = parse(path.read_text(), str(path))
    for section, changes in sections.items():
        tree[section] = {**tree[section], **changes} if isinstance(changes, dict) else changes
    path.write_text(dump(tree))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"upstream": {"density": 0.02}}, "`upstream.density` is 0.02, but was 0.01"),
        ({"model": {"hidden": 17}}, "`model.hidden` is 17, but was 16"),
        ({"seed": 4, "participation": 0.5}, "`participation` is 0.5, but was 1.0; `seed` is 4"),
        ({"clients": {"local_steps": 2}}, "`clients.local_steps` is 2, but was 1"),
    ],
)
def test_another_config_is_refused_by_its_key(run, changes, said):
    # pitfall 20
    change(run, **changes)
    with pytest.raises(ConfigError, match=r"a run goes on with the config that it began with") as e:
        plan_resume(RunFolder.open(run), 8)
    assert said in str(e.value)
    assert len(str(e.value).splitlines()) == 1


def test_what_changes_no_byte_may_change(run):
    change(run, rounds=6, evaluate={"every": 1}, engine={"actors": 1}, checkpoint={"every": None})
    assert plan_resume(RunFolder.open(run)).config.rounds == 6


def test_another_layout_is_refused(run):
    generation = generations(run / "checkpoint")[0].path
    rewrite(generation, "server.json", lambda facts: {**facts, "layouts": ["0" * 16, "1" * 16]})
    with pytest.raises(ConfigError, match=f"{generation}.* another layout .parameters {'0' * 16}"):
        plan_resume(RunFolder.open(run), 8)


def rewrite(generation: Path, name: str, change) -> None:
    """Change a JSON file of a generation, and its entry in the manifest."""
    from fedsbc.checkpoint.generation import sha256

    path = generation / name
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    manifest = json.loads((generation / "manifest.json").read_text())
    manifest["files"][name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    (generation / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("what", ["torch", "fedsbc", "numpy", "cpu"])
def test_another_version_is_refused_unless_forced(run, monkeypatch, what):
    now = environment.describe()
    if what == "cpu":
        now["cpu"] = "another"
    else:
        now["packages"][what] = "99.9"
    monkeypatch.setattr(environment, "describe", lambda: now)
    with pytest.raises(ConfigError, match=r"another|99\.9") as error:
        plan_resume(RunFolder.open(run), 8)
    assert "--force" in str(error.value)
    (note,) = plan_resume(RunFolder.open(run), 8, force=True).notes
    assert "--force" in note


def test_another_gpu_counts_where_the_run_may_use_one():
    before = {**environment.describe(), "gpus": ["Some GPU"]}
    assert _differing_versions(before, small()) == ""
    found = _differing_versions(before, small("engine.gpus_per_actor=0.25"))
    assert found.endswith("but was Some GPU")
    on_cpu = small("engine.gpus_per_actor=0.25", "engine.device=cpu")
    assert _differing_versions(before, on_cpu) == ""


def test_other_data_are_refused(run):
    plan = plan_resume(RunFolder.open(run), 8)
    generation = plan.generation.path
    members = json.loads((generation / "server.json").read_text())["members"]
    members[3]["num_samples"] += 1
    rewrite(generation, "server.json", lambda facts: {**facts, "members": members})
    with pytest.raises(ConfigError, match="client 3 has 500 samples, but had 501"):
        resume(run, 8)


def test_a_damaged_generation_is_named_and_the_one_before_goes_on(run, ended, tmp_path):
    new, old = generations(run / "checkpoint")
    assert (new.round, old.round) == (4, 2)
    os.truncate(new.path / "clients/client-00003.a", 5000)
    plan = plan_resume(RunFolder.open(run), 8)
    assert plan.generation.round == 2
    (note,) = plan.notes
    assert str(new.path / "clients/client-00003.a") in note
    assert "going on from round 2 instead" in note
    parts = resume(run, 8)
    whole = begin(small("rounds=8", "clients.local_steps=1"), tmp_path / "whole")
    check_same(run, parts.state_folder, tmp_path / "whole", whole.state_folder)


def test_nothing_but_damage_is_refused(run):
    for generation in generations(run / "checkpoint"):
        os.truncate(generation.path / "server.safetensors", 9)
    with pytest.raises(RunError, match=r"round-000004/server\.saf.*; .*round-000002/server\.saf"):
        plan_resume(RunFolder.open(run), 8)


@pytest.mark.parametrize("rounds", [None, 4, 3])
def test_a_run_that_ended_needs_more_rounds(run, rounds):
    with pytest.raises(
        RunError, match=r"nothing to resume: 4 rounds are done, and [43] are asked for"
    ) as error:
        plan_resume(RunFolder.open(run), rounds)
    assert "--rounds" in str(error.value)


def test_a_run_without_checkpoints_says_so(tmp_path):
    begin(small("rounds=1"), tmp_path / "run")
    with pytest.raises(RunError, match=r"has ended and is whole.*checkpoint\.every: null"):
        plan_resume(RunFolder.open(tmp_path / "run"), 8)
    (tmp_path / "run" / "summary.json").unlink()
    with pytest.raises(RunError, match=r"no checkpoint was saved .checkpoint\.every: null"):
        plan_resume(RunFolder.open(tmp_path / "run"), 8)


def test_a_run_is_not_cut_down_to_its_checkpoint(tmp_path):
    """It would end with a last round that nobody evaluated."""
    begin(small("rounds=4", "checkpoint.every=2", "evaluate.every=4"), tmp_path / "run")
    newest, *_ = generations(tmp_path / "run/checkpoint")
    shutil.rmtree(newest.path)
    (tmp_path / "run/summary.json").unlink()
    with pytest.raises(RunError, match="2 rounds are done, and 2 are asked for"):
        plan_resume(RunFolder.open(tmp_path / "run"), 2)


def test_an_engine_that_hides_its_states_has_no_checkpoints(tmp_path):
    from tests.local_grid import LocalGrid

    config = small("rounds=1", "checkpoint.every=1")
    run_config = {"experiment": to_json(config), "out": str(tmp_path / "run")}
    with pytest.raises(ConfigError, match=r"checkpoint\.every: 1, but this engine"):
        app(LocalGrid(config), Context(RUN_ID, 1, {}, RecordDict(), run_config))


def test_a_checkpoint_that_cannot_be_written_ends_the_run_in_one_line(tmp_path, monkeypatch):
    from fedsbc.checkpoint import writing

    config = small("rounds=4", "checkpoint.every=2")
    whole = begin(config, tmp_path / "whole")
    copy_state = writing.copy_state

    def full(state, target):
        if state.round > 2:
            raise OSError(28, "No space left on device", str(target))
        return copy_state(state, target)

    with monkeypatch.context() as patch:
        patch.setattr(writing, "copy_state", full)
        with pytest.raises(RunError, match="checkpoint of round 4 cannot be written") as error:
            begin(config, tmp_path / "run")
    assert len(str(error.value).splitlines()) == 1
    parts = resume(tmp_path / "run")
    check_same(tmp_path / "run", parts.state_folder, tmp_path / "whole", whole.state_folder)


def test_what_a_checkpoint_cost_is_told(ended, run, capsys):
    resume(run, 6)
    said = capsys.readouterr().err
    assert "checkpoints: 1 took" in said
    assert "costs.jsonl" in said
    costs = [json.loads(line) for line in (run / "checkpoint/costs.jsonl").read_text().splitlines()]
    assert [cost["round"] for cost in costs] == [0, 2, 4, 6]
    assert all(cost["seconds"] > 0 and cost["written_bytes"] > 0 for cost in costs)


def test_node_ids_are_those_of_the_new_start(run, monkeypatch):
    import tests.local_grid as module

    monkeypatch.setattr(module, "FIRST_NODE", FIRST_NODE + 500)
    resume(run, 5)
    assert RunFolder.open(run).summary().completed
