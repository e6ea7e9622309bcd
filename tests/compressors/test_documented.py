"""docs/compressors.md says what the schemes are, and its measured tables are those of today."""

import re
from pathlib import Path

from fedsbc.compressors import TABLE, options_for
from tests.benchmarks.compressor_tables import per_entry
from tests.compressors.formulas import SIZE, SPARSE, measured

PAGE = (Path(__file__).parents[2] / "docs" / "compressors.md").read_text()


def test_the_table_names_schemes_and_their_error_feedback():
    rows = dict(re.findall(r"^\| `([\w-]+)` \|(.*)$", PAGE.split("## What holds")[0], re.MULTILINE))
    assert set(rows) <= set(TABLE)
    assert len(rows) >= 15
    for name, row in rows.items():
        default = options_for(name).model_fields["error_feedback"].default
        feedback = row.split("|")[3].strip()
        assert feedback.startswith(("on", "always") if default else ("never", "float16")), name


def test_the_table_of_bits_is_of_today():
    update, found = measured({"name": "sbc", "density": 0.01})
    formula = SPARSE["sbc"][0](SIZE, update.num_kept)
    cell = f"{found.payload_bits / update.num_kept:.3f} ({formula / update.num_kept:.3f})"
    row = next(line for line in PAGE.splitlines() if line.startswith("| sbc |"))
    assert cell in row
    assert per_entry({"name": "onebit"}, SIZE + 64) in PAGE
