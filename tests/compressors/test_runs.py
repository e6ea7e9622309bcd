"""Every config of configs/compressors runs: three rounds over the real protocol."""

from pathlib import Path

import numpy as np
import pytest

from fedsbc import config as configs
from fedsbc.compressors import TABLE
from tests.experiments import play
from tests.local_grid import LocalGrid

CONFIGS = Path(__file__).parents[2] / "configs"
FILES = sorted(CONFIGS.glob("compressors/*.yaml"))
SMALLER = (
    "rounds=3",
    "participation=1.0",
    "clients.count=3",
    "clients.local_steps=2",
    "data.partition={kind: iid}",
    "evaluate.every=9",
)


def test_every_scheme_has_a_config():
    assert {configs.load(file).upstream.name for file in CONFIGS.rglob("*.yaml")} == set(TABLE)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_three_rounds(file):
    config = configs.load(file, SMALLER)
    outcome = play(config, LocalGrid(config)).outcome
    rows = [row for row in outcome.ledger.rows if row.direction == "up" and row.num_kept]
    assert outcome.server.version == 3
    assert len(rows) == 9
    assert np.isfinite(outcome.server.weights).all()
    dense_bits = rows[0].dense_bits
    most = {"none": 1, "none-float16": 0.5}.get(file.stem, 0.3)
    assert all(row.payload_bits < most * dense_bits + 300 for row in rows)
