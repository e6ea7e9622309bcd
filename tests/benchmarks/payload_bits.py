"""Bits of recorded SBC updates beside the formula and the bound, as a table in Markdown.

    fedsbc run configs/demo/sbc.yaml --set rounds=10 --set debug.keep_payloads=true --out RUN
    python -m tests.benchmarks.payload_bits RUN... [--write docs/payload.md]

One line per run. All figures are bits per kept entry, over all payloads of the run.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedsbc import bits, config, models
from fedsbc.flat_model import FlatModel
from fedsbc.layout import Layout
from fedsbc.payload import decode, measure

BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
HEAD = (
    "| scope | density | updates | kept in each | positions | formula at p | formula by tensor "
    "| log2 C(d_t, k_t) | whole payload |\n|---|---|---|---|---|---|---|---|---|\n"
)


@dataclass
class Sums:
    """Bits over all payloads of a run."""

    payloads: int = 0
    kept: int = 0
    position_bits: int = 0
    payload_bits: int = 0
    formula_bits: float = 0.0
    subset_bits: float = 0.0

    def add(self, data: bytes, layout: Layout) -> None:
        """Add one payload."""
        found = measure(data, layout)
        self.payloads += 1
        self.kept += found.num_kept
        self.position_bits += found.position_bits
        self.payload_bits += found.payload_bits
        for block in decode(data, layout).blocks:
            self.formula_bits += bits.position_bits(block.size, block.num_kept)
            self.subset_bits += bits.subset_bits(block.size, block.num_kept)


def line(run: Path) -> str:
    """Return the table's line of a run."""
    settings = config.load(run / "config.yaml")
    layout = FlatModel(models.build(settings.model, settings.seed)).layout
    sums = Sums()
    for file in sorted((run / "payloads").glob("*-up-*.fedsbc")):
        sums.add(file.read_bytes(), layout)
    density = settings.upstream.density
    per_entry = [
        sums.position_bits / sums.kept,
        bits.rice_bits_per_position(density),
        sums.formula_bits / sums.kept,
        sums.subset_bits / sums.kept,
        sums.payload_bits / sums.kept,
    ]
    cells = [
        settings.upstream.scope,
        f"{density:g}",
        str(sums.payloads),
        f"{np.round(sums.kept / sums.payloads):.0f}",
        *(f"{value:.3f}" for value in per_entry),
    ]
    return f"| {' | '.join(cells)} |\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or put it between its marks in a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    table = HEAD + "".join(line(run) for run in given.runs)
    if given.write is None:
        print(table, end="")
        return
    before, rest = given.write.read_text().split(BEGIN)
    given.write.write_text(before + BEGIN + table + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
