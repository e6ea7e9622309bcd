"""A run that was stopped and resumed ends as the one that was not: every byte, every row."""

import shutil
import sys
from dataclasses import asdict
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from fedsbc.checkpoint import generations, plan_resume, restore_states
from fedsbc.config import Config, to_json
from fedsbc.errors import RunError
from fedsbc.message import FIELDS
from fedsbc.run_folder import RunFolder
from fedsbc.state_files import FileHome
from fedsbc.state_slot import Slot
from sims.flower_private import RUN_ID
from strategies.app import app
from tests.experiments import small
from tests.local_grid import SharingGrid

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
