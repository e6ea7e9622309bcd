from pathlib import Path

import pytest

from fedsbc.errors import ConfigError, WireError
from sims.cli import run
from sims.commands.inspect import inspect, inspect_command
from tests.payload.frozen import load, update_of

CASES = {case["name"]: case for case in load()}


def write(folder: Path, name: str) -> Path:
    file = folder / "update.fedsbc"
    file.write_bytes(bytes.fromhex(CASES[name]["hex"]))
    return file


@pytest.mark.parametrize("name", CASES)
def test_every_payload_is_explained(name: str, tmp_path: Path) -> None:
    update = update_of(CASES[name])
    text = inspect(write(tmp_path, name), update.layout)
    lines = text.splitlines()
    assert f"{len(CASES[name]['hex']) // 2} bytes" in lines[0]
    assert update.layout.hash in lines[1]
    rows = [line.split() for line in lines[-len(update.blocks) :]] if update.blocks else []
    assert [row[0] for row in rows] == [tensor.name for tensor in update.layout.tensors]


def test_rows_say_coding_parameter_and_bits(tmp_path: Path) -> None:
    case = CASES["sbc, one tensor"]
    text = inspect(write(tmp_path, case["name"]), update_of(case).layout)
    header, row = (line.split("  ") for line in text.splitlines()[-2:])
    columns = [cell.strip() for cell in header if cell.strip()]
    values = dict(zip(columns, (cell.strip() for cell in row if cell.strip()), strict=True))
    assert values == {
        "tensor": "w",
        "shape": "10x20",
        "kind": "sparse mean",
        "coding": "rice",
        "b": "5",
        "kept": "5",
        "of": "200",
        "position bits": "32",
        "per position": "6.400",
        "value bits": "32",
        "header bits": "16",
        "value": "mean -0.125",
    }


def test_without_tensors_the_header_is_read(tmp_path: Path) -> None:
    text = inspect(write(tmp_path, "sbc, one mean for all"), None)
    assert "one for all blocks" in text
    assert len(text.splitlines()) == 4


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        inspect(tmp_path / "nowhere", None)
    file = tmp_path / "other"
    file.write_bytes(b"PK" + bytes(100))
    with pytest.raises(WireError, match="other"):
        inspect(file, None)


def test_the_command_finds_the_tensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np

    from fedsbc import models
    from fedsbc.flat_model import FlatModel
    from fedsbc.payload import encode
    from fedsbc.updates import DenseBlock, Update

    layout = FlatModel(models.build(models.options_for("mlp")(name="mlp"), 0)).layout
    blocks = [DenseBlock(np.ones(tensor.size, np.float32)) for tensor in layout.tensors]
    file = tmp_path / "payloads" / "up.fedsbc"
    file.parent.mkdir()
    file.write_bytes(encode(Update(layout, blocks)))
    inspect_command(file, None, "mlp")
    by_model = capsys.readouterr().out
    assert layout.tensors[0].name in by_model
    inspect_command(file, None, None)
    assert "give --run RUN or --model NAME" in capsys.readouterr().out
    (tmp_path / "config.yaml").write_text("name: x\n")
    with pytest.raises(ConfigError, match="one of them"):
        inspect_command(file, tmp_path, "mlp")
    with pytest.raises(ConfigError, match="no run folder"):
        inspect_command(file, tmp_path / "payloads", None)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "sbc, one tensor")
    assert run(["inspect", str(file)]) == 0
    assert "fedsbc.v1" in capsys.readouterr().out
    file.write_bytes(file.read_bytes()[:-1])
    assert run(["inspect", str(file)]) == 1
    assert "damaged" in capsys.readouterr().err
