"""A run that was stopped and resumed ends as the one that was not: every byte, every row."""

import json
import os
import shutil
import sys
from dataclasses import asdict
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from fedsbc import environment
from fedsbc.checkpoint import generations, plan_resume, restore_states
from fedsbc.checkpoint.resuming import _differing_versions
from fedsbc.config import Config, to_json
from fedsbc.config.yaml_text import dump, parse
from fedsbc.errors import ConfigError, RunError
from fedsbc.message import FIELDS
from fedsbc.run_folder import RunFolder
from fedsbc.state_files import FileHome, Slot
from sims.flower_private import RUN_ID
from strategies.app import app
from tests.experiments import small
from tests.local_grid import FIRST_NODE, SharingGrid

fresh = count()


def play(config: Config, out: Path, states: Path, generation: Path | None = None, **options):
    """Call the ServerApp on clients of this process; return their grid."""
    run_config = {"experiment": to_json(config), "out": str(out)}
    if generation is not None:
        run_config["generation"] = str(generation)
        restore_states(generation, states)
    grid = SharingGrid(config, states, **options)
    app(grid, Context(RUN_ID, 1, {}, RecordDict(), run_config))
    return grid


def begin(config: Config, out: Path, **options):
    return play(config, out, out.with_name(f"{out.name}-states-{next(fresh)}"), **options)


def resume(out: Path, rounds: int | None = None, *, force: bool = False, **options):
    plan = plan_resume(RunFolder.open(out), rounds, force=force)
    states = out.with_name(f"{out.name}-states-{next(fresh)}")
    return play(plan.config, out, states, plan.generation.path, **options)


def client_arrays(folder: Path) -> dict[str, bytes]:
    """Return every array of every client's newest state: residual, momentum, pending update."""
    arrays = {}
    for path in sorted(folder.glob("client-*.a")):
        run_id = (Slot(path).header() or Slot(path.with_suffix(".b")).header())["run_id"]
        client_id = int(path.stem.partition("-")[2])
        state = FileHome(folder, run_id, client_id).load(10**6)
        arrays[f"{client_id} round"] = str(state.round)
        for name, array in state.arrays.items():
            arrays[f"{client_id} {name}"] = array.tobytes()
    return arrays


def check_same(out: Path, states: Path, other: Path, other_states: Path) -> None:
    """Check that two runs left the same behind, but for their clocks."""
    a, b = RunFolder.open(out), RunFolder.open(other)
    assert a.summary().model_sha256 == b.summary().model_sha256
    assert a.ledger().rows == b.ledger().rows
    left, right = client_arrays(states), client_arrays(other_states)
    assert left.keys() == right.keys()
    assert [name for name in left if left[name] != right[name]] == []
    rounds = [[{**asdict(r), "wall_s": 0} for r in folder.rounds()] for folder in (a, b)]
    assert rounds[0] == rounds[1]
    summaries = [{**asdict(folder.summary()), "wall_s": 0} for folder in (a, b)]
    assert summaries[0] == summaries[1]


RUNS = {
    "sbc both ways": (
        "participation=0.5",
        "upstream={name: sbc, density: 0.01}",
        "downstream={name: sbc, density: 0.05}",
    ),
    "topk both ways": (
        "participation=0.25",
        "upstream={name: topk, density: 0.01}",
        "downstream={name: topk, density: 0.05}",
    ),
    "fedavg with momentum": (
        "participation=0.5",
        "upstream={name: none}",
        "clients.optimizer={name: sgd, lr: 0.05, momentum: 0.9, keep_momentum: true}",
    ),
    "dgc": (
        "participation=0.5",
        "upstream={name: dgc, density: 0.01, warmup: [0.1, 0.05, 0.02]}",
    ),
    "onebit up, dgc down": (
        "participation=0.5",
        "upstream={name: onebit}",
        "downstream={name: dgc, density: 0.05}",
    ),
    "adam, masked, on the wire": (
        "participation=0.5",
        "transport=wire",
        "clients.optimizer={name: adam, lr: 0.001, keep_momentum: true, mask_momentum: true}",
        "clients.schedule={kind: step, milestones: [5, 12], decay: 0.5}",
    ),
    "local buffers": (
        "participation=0.5",
        "model={name: cnn-bn, buffers: local}",
        "clients.count=4",
        "clients.local_steps=1",
    ),
    "averaged buffers, weighted": (
        "participation=0.5",
        "model={name: cnn-bn, buffers: average}",
        "aggregation=examples",
        "clients.count=4",
        "clients.local_steps=1",
    ),
}


@pytest.mark.parametrize("overrides", RUNS.values(), ids=RUNS.keys())
def test_six_rounds_are_three_and_three_more(tmp_path, overrides):
    # pitfall 19
    whole = begin(small(*overrides, "rounds=6", "evaluate.every=3"), tmp_path / "whole")
    begin(
        small(*overrides, "rounds=3", "evaluate.every=3", "checkpoint.every=2"), tmp_path / "parts"
    )
    parts = resume(tmp_path / "parts", rounds=6)
    check_same(tmp_path / "parts", parts.state_folder, tmp_path / "whole", whole.state_folder)
    last = generations(tmp_path / "parts/checkpoint")[0]
    assert last.round == 6
    assert client_arrays(last.path / "clients") == client_arrays(parts.state_folder)


def interrupted(config: Config, out: Path, after: int) -> bool:
    """Run until a number of lines of the strategy, then Ctrl-C; return whether it came to that."""
    left = [after]

    def trace(frame, event, argument):
        name = frame.f_code.co_filename
        if "/strategies/" in name and not name.endswith("/app.py") and "/tests/" not in name:
            if event == "line":
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            return trace
        return None

    sys.settrace(trace)
    try:
        begin(config, out)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("every", [0, 2])
def test_ctrl_c_anywhere_loses_nothing(tmp_path, every, capsys):
    overrides = ("rounds=4", "participation=0.5", "downstream={name: sbc, density: 0.05}")
    config = small(*overrides, f"checkpoint.every={every}", "clients.local_steps=1")
    whole = begin(config, tmp_path / "whole")
    draw, num_lines = np.random.default_rng(every), count_lines(config, tmp_path / "counted")
    for after in draw.integers(0.1 * num_lines, num_lines, 6):
        out = tmp_path / f"after-{after}"
        assert interrupted(config, out, int(after))
        if not generations(out / "checkpoint"):
            assert not (out / "rounds.jsonl").exists(), "a hello that was cut short leaves nothing"
            continue
        round = generations(out / "checkpoint")[0].round
        assert f"round {round} is saved; to go on: fedsbc resume {out}" in capsys.readouterr().err
        if round == config.rounds:
            continue  # it came after the last round
        parts = resume(out)
        check_same(out, parts.state_folder, tmp_path / "whole", whole.state_folder)


def count_lines(config: Config, out: Path) -> int:
    """Return how many lines of the strategy a run executes."""
    lines = [0]

    def trace(frame, event, argument):
        name = frame.f_code.co_filename
        if "/strategies/" in name and not name.endswith("/app.py") and "/tests/" not in name:
            lines[0] += event == "line"
            return trace
        return None

    sys.settrace(trace)
    try:
        begin(config, out)
    finally:
        sys.settrace(None)
    return lines[0]


def test_clients_that_trained_in_the_broken_round_start_it_again(tmp_path):
    config = small("rounds=4")

    def ctrl_c(message):
        fields = message.content[FIELDS]
        if fields["kind"] == "train" and fields["round"] == 3 and fields["client_id"] == 5:
            raise KeyboardInterrupt
        return

    whole = begin(config, tmp_path / "whole")
    states = tmp_path / "broken-states"
    with pytest.raises(KeyboardInterrupt):
        play(config, tmp_path / "broken", states, fault=ctrl_c)
    newest = {int(v) for k, v in client_arrays(states).items() if k.endswith(" round")}
    assert newest == {2, 3}, "some have trained in round 3"
    parts = resume(tmp_path / "broken")
    check_same(tmp_path / "broken", parts.state_folder, tmp_path / "whole", whole.state_folder)


def test_a_run_can_be_stopped_and_resumed_again_and_again(tmp_path):
    config = small("rounds=6", "participation=0.5", "evaluate.every=1")
    whole = begin(config, tmp_path / "whole")
    begin(
        small("rounds=1", "participation=0.5", "evaluate.every=1", "checkpoint.every=1"),
        tmp_path / "parts",
    )
    for rounds in range(2, 7):
        parts = resume(tmp_path / "parts", rounds)
    check_same(tmp_path / "parts", parts.state_folder, tmp_path / "whole", whole.state_folder)
    assert (tmp_path / "parts/checkpoint/incarnation").read_text() == "6\n"
    assert {c[FIELDS]["incarnation"] for c in parts.sent_content if "incarnation" in c[FIELDS]} == {
        6
    }


def test_rounds_after_the_checkpoint_are_cut_off(tmp_path):
    config = small("rounds=5", "checkpoint.every=2")
    whole = begin(config, tmp_path / "whole")
    begin(config, tmp_path / "killed")
    shutil.rmtree(tmp_path / "killed/checkpoint/round-000005")  # as a kill -9 in round 5 leaves it
    (tmp_path / "killed/summary.json").unlink()
    with (tmp_path / "killed/rounds.jsonl").open("a") as file:
        file.write('{"round": 6, "acc')
    parts = resume(tmp_path / "killed")
    check_same(tmp_path / "killed", parts.state_folder, tmp_path / "whole", whole.state_folder)


def test_a_kill_between_the_last_round_and_the_outcome(tmp_path):
    config = small("rounds=3", "checkpoint.every=2", "final_sync=true")
    whole = begin(config, tmp_path / "whole")
    begin(config, tmp_path / "killed")
    for name in ("summary.json", "ledger.parquet", "model.safetensors"):
        (tmp_path / "killed" / name).unlink()
    parts = resume(tmp_path / "killed")
    check_same(tmp_path / "killed", parts.state_folder, tmp_path / "whole", whole.state_folder)


def test_a_synchronised_run_can_be_extended_as_one_that_was_not(tmp_path):
    settings = ("participation=0.5", "evaluate.every=1", "final_sync=true")
    whole = begin(small("rounds=6", *settings), tmp_path / "whole")
    begin(small("rounds=3", "checkpoint.every=5", *settings), tmp_path / "parts")
    parts = resume(tmp_path / "parts", 6)
    check_same(tmp_path / "parts", parts.state_folder, tmp_path / "whole", whole.state_folder)


def test_aborted_rounds_in_a_row_are_counted_on(tmp_path):
    def nobody(message):
        fields = message.content[FIELDS]
        return "drop-request" if fields["kind"] == "train" and fields["round"] > 1 else None

    settings = ("failures.client_timeout_s=0.1", "failures.abort_after=4", "checkpoint.every=1")
    begin(small("rounds=3", *settings), tmp_path / "run", fault=nobody)
    with pytest.raises(RunError, match="round 5: 4 rounds in a row could not be used"):
        resume(tmp_path / "run", 10, fault=nobody)
    assert generations(tmp_path / "run/checkpoint")[0].round == 5


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
    with pytest.raises(RunError, match=r"nothing to resume: 4 of .* rounds are done") as error:
        plan_resume(RunFolder.open(run), rounds)
    assert "--rounds" in str(error.value)


def test_a_run_without_checkpoints_says_so(tmp_path):
    begin(small("rounds=1"), tmp_path / "run")
    with pytest.raises(RunError, match=r"no checkpoint was saved .checkpoint\.every: null"):
        plan_resume(RunFolder.open(tmp_path / "run"), 8)


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
