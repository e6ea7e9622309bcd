"""The run folder: whole files or none, and clear words where something is missing."""

import json
from pathlib import Path

import numpy as np
import pytest

from fedsbc import environment
from fedsbc.errors import ConfigError, RunError
from fedsbc.files import replacing, write_text
from fedsbc.layout import Layout
from fedsbc.ledger import Ledger, LedgerRow
from fedsbc.records import RoundRecord, Summary
from fedsbc.run_folder import RunFolder

SUMMARY = Summary("x", 2, 0.9, 0.95, 8, 80, 10.0, 5.0, 1.0, 0.0, 1.5, 7, "ab" * 32, 0, True)


def record(round: int, accuracy: float | None = None) -> RoundRecord:
    return RoundRecord(round, accuracy, None, 0.5, 8, 80, 0.0, 0.1, 10, 0)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs" / "x", "name: x\nseed: 0\n")


def test_an_existing_path_is_refused_and_left_alone(folder: RunFolder) -> None:
    with pytest.raises(ConfigError, match=r"exists already.*--out, or remove this one$"):
        RunFolder.create(folder.path, "name: other\n")
    (folder.path / "checkpoint").mkdir()
    with pytest.raises(ConfigError, match=r"exists already.*--out, or go on.*fedsbc resume"):
        RunFolder.create(folder.path, "name: other\n")
    assert folder.config() == {"name": "x", "seed": 0}


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be made"):
        RunFolder.create(tmp_path / "file" / "x", "name: x\n")


def test_open_wants_a_run_folder(folder: RunFolder) -> None:
    assert RunFolder.open(folder.path).config() == folder.config()
    with pytest.raises(ConfigError, match=r"holds no config\.yaml"):
        RunFolder.open(folder.path.parent)
    with pytest.raises(ConfigError, match="is not a folder"):
        RunFolder.open(folder.path / "missing")


@pytest.mark.parametrize("text", ["a: [", "- 1\n"])
def test_a_config_that_is_none_is_one_clear_error(folder: RunFolder, text: str) -> None:
    write_text(folder.path / "config.yaml", text)
    with pytest.raises(RunError, match=r"config\.yaml"):
        folder.config()


def test_rounds_come_back_and_a_line_cut_short_is_left_out(folder: RunFolder) -> None:
    assert folder.rounds() == []
    records = [record(1, 0.25), record(2), record(3, 0.5)]
    for each in records:
        folder.append_round(each)
    assert folder.rounds() == records
    path = folder.path / "rounds.jsonl"
    path.write_text(path.read_text()[:-9])
    assert folder.rounds() == records[:2]


def test_a_folder_is_cut_back_to_what_a_checkpoint_holds(folder: RunFolder) -> None:
    for each in (record(1, 0.25), record(2), record(3, 0.5)):
        folder.append_round(each)
    write_text(folder.path / "summary.json", "{}")
    folder.cut_back("name: run\nrounds: 9\n", [record(1, 0.25)])
    assert not folder.has_summary()
    assert folder.config()["rounds"] == 9
    folder.append_round(record(2, 0.75))
    assert folder.rounds() == [record(1, 0.25), record(2, 0.75)]


def test_a_line_that_is_no_round_is_named(folder: RunFolder) -> None:
    folder.append_round(record(1))
    with (folder.path / "rounds.jsonl").open("a") as file:
        file.write('{"round": 2}\n')
    with pytest.raises(RunError, match=r"rounds\.jsonl:2"):
        folder.rounds()


def test_nan_never_reaches_a_file(folder: RunFolder) -> None:
    with pytest.raises(ValueError):
        folder.append_round(record(1, float("nan")))
    with pytest.raises(ValueError):
        folder.write_json("summary.json", {"accuracy": float("nan")})
    assert [path.name for path in folder.path.iterdir()] == ["config.yaml"]


def test_summary_and_ledger_come_back(folder: RunFolder) -> None:
    with pytest.raises(RunError, match="has not ended"):
        folder.summary()
    with pytest.raises(RunError, match="ledger"):
        folder.ledger()
    row = LedgerRow(1, 0, "up", "train", 1, 8, 0, 0, 0, 8, 64, 96)
    folder.write_summary(SUMMARY)
    folder.write_ledger(Ledger([row]))
    assert folder.summary() == SUMMARY
    assert folder.ledger().rows == [row]
    (folder.path / "summary.json").write_text("{")
    with pytest.raises(RunError, match=r"summary\.json"):
        folder.summary()


def test_the_model_has_the_layouts_names_and_shapes(folder: RunFolder) -> None:
    layout = Layout.of([("w", (2, 3)), ("scale", ()), ("none", (0,))])
    buffers = Layout.of([("norm.mean", (2,))])
    weights, means = np.arange(7, dtype=np.float32), np.array([1.5, -0.0], np.float32)
    folder.write_model(layout, weights, buffers, means)
    tensors = folder.model()
    assert {name: value.shape for name, value in tensors.items()} == {
        "w": (2, 3),
        "scale": (),
        "none": (0,),
        "norm.mean": (2,),
    }
    assert tensors["w"].tobytes() + tensors["scale"].tobytes() == weights.tobytes()
    assert tensors["norm.mean"].tobytes() == means.tobytes()
    (folder.path / "model.safetensors").write_bytes(b"no")
    with pytest.raises(RunError, match=r"model\.safetensors"):
        folder.model()


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_text(path, "old")

    def write_half() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise KeyError("lost on the way")

    with pytest.raises(KeyError, match="lost on the way"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_are_appended(folder: RunFolder) -> None:
    folder.append_error("first\n")
    folder.append_error("second")
    assert (folder.path / "errors.log").read_text() == "first\n\nsecond\n\n"


def test_the_environment_names_versions_and_no_variables(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "hush-hush")
    folder.write_environment()
    text = (folder.path / "environment.json").read_text()
    data = json.loads(text)
    assert data["packages"]["numpy"] == np.__version__
    assert data["cores"] >= 1
    assert data["memory_bytes"] > 2**20
    assert "hush-hush" not in text


def test_a_package_outside_a_checkout_has_no_commit(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("")
    assert environment._git(tmp_path) is None
