"""The table of docs/payload.md is made by a command, from the payloads of a run."""

from pathlib import Path

import numpy as np
import pytest

from fedsbc import bits, config, models
from fedsbc.flat_model import FlatModel
from fedsbc.payload import encode, measure
from fedsbc.updates import SparseMeanBlock, Update
from tests.benchmarks import payload_bits

DEMO = Path(__file__).parents[2] / "configs" / "demo" / "sbc.yaml"


def test_table_of_recorded_payloads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = config.load(DEMO, ["upstream.density=0.02", "model.name=mlp"])
    layout = FlatModel(models.build(settings.model, settings.seed)).layout
    rng = np.random.default_rng(0)
    (tmp_path / "payloads").mkdir()
    (tmp_path / "config.yaml").write_text(config.to_yaml(settings))
    sizes, found = [tensor.size for tensor in layout.tensors], []
    for client in range(3):
        positions = [np.flatnonzero(rng.random(size) < 0.02) for size in sizes]
        blocks = [
            SparseMeanBlock(size, kept, np.float32(len(kept) > 0))
            for size, kept in zip(sizes, positions, strict=True)
        ]
        data = encode(Update(layout, blocks))
        (tmp_path / "payloads" / f"round-000001-up-{client:05d}.fedsbc").write_bytes(data)
        found.append(measure(data, layout))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{payload_bits.BEGIN}old\n{payload_bits.END}after\n")
    payload_bits.main([str(tmp_path)])
    payload_bits.main([str(tmp_path), "--write", str(page)])
    table = capsys.readouterr().out
    assert page.read_text() == f"before\n{payload_bits.BEGIN}{table}{payload_bits.END}after\n"
    cells = [cell.strip() for cell in table.splitlines()[-1].strip("|").split("|")]
    kept = sum(payload.num_kept for payload in found)
    assert cells[:4] == ["tensor", "0.02", "3", f"{kept / 3:.0f}"]
    assert cells[4] == f"{sum(p.position_bits for p in found) / kept:.3f}"
    assert cells[5] == f"{bits.rice_bits_per_position(0.02):.3f}"
    assert cells[8] == f"{sum(p.payload_bits for p in found) / kept:.3f}"
    assert float(cells[7]) < float(cells[6]) == pytest.approx(float(cells[4]), rel=0.01)
