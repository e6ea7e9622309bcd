"""The measured tables of docs/compressors.md.

    python -m tests.benchmarks.compressor_tables bits [--write docs/compressors.md]
    python -m tests.benchmarks.compressor_tables counts [--write docs/compressors.md]
    python -m tests.benchmarks.compressor_tables runs RUN... [--write docs/compressors.md]
    python -m tests.benchmarks.compressor_tables cost BENCH.json [--write docs/compressors.md]

`bits` compresses and encodes normal data; `counts` lets GaussianK's threshold be corrected up to
three times; `runs` reads run folders, one line each; `cost` reads
what `fedsbc bench compressors --json` wrote.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from fedsbc import bits, config
from fedsbc.run_folder import RunFolder
from fedsbc.units import human_bits, human_ratio
from tests.compressors.formulas import (
    DENSITIES,
    QSGD_LEVELS,
    SIZE,
    SPARSE,
    WHOLE,
    gaussiank_ratios,
    measured,
    qsgd_formula_bits,
)


def bits_table() -> Iterator[str]:
    """Yield bits per sent entry by density, then bits per entry of the schemes without one."""
    yield row("scheme", *(f"p = {100 * density:g} %" for density in DENSITIES))
    yield "|---" * (1 + len(DENSITIES)) + "|"
    for name, (formula, options) in SPARSE.items():
        cells = []
        for density in DENSITIES:
            update, found = measured({"name": name, "density": density, **options})
            kept = update.num_kept
            cells.append(f"{found.payload_bits / kept:.3f} ({formula(SIZE, kept) / kept:.3f})")
        yield row(name, *cells)
    yield ""
    yield row("scheme", "measured", "formula")
    yield "|---|---|---|"
    for name, whole_formula in WHOLE.items():
        yield per_entry({"name": name}, whole_formula(SIZE))
    yield per_entry({"name": "none", "dtype": "float16"}, bits.fp16_bits(SIZE))
    update, _ = measured({"name": "terngrad"})
    yield per_entry({"name": "terngrad"}, bits.terngrad_bits(SIZE, update.num_kept))
    for levels in QSGD_LEVELS:
        given = {"name": "qsgd", "levels": levels}
        yield per_entry(given, qsgd_formula_bits(measured(given)[0]))


def per_entry(given: dict[str, object], formula_bits: float) -> str:
    """Return the line of a scheme without a density: bits per entry of the tensor."""
    _, found = measured(given)
    name = ", ".join(
        f"{value}" if key == "name" else f"{key} {value}" for key, value in given.items()
    )
    return row(name, f"{found.payload_bits / SIZE:.4f}", f"{formula_bits / SIZE:.4f}")


def counts_table() -> Iterator[str]:
    """Yield what GaussianK sends, in multiples of k, by the number of corrections."""
    yield row("data", "density", *(f"{number} corrections" for number in range(4)))
    yield "|---" * 6 + "|"
    rng = np.random.default_rng(0)
    size = 4_000_000
    inputs = {
        "normal": rng.standard_normal(size),
        "Laplace": rng.laplace(size=size),
        "Student t, 4 degrees": rng.standard_t(4, size),
        "normal, shifted by -5": rng.standard_normal(size) - 5,
        "constant": np.full(size, 2.0),
    }
    for (name, values), density in product(inputs.items(), (0.001, 0.005, 0.01)):
        ratios = gaussiank_ratios(values.astype(np.float32), density)
        yield row(name, f"{100 * density:g} %", *(f"{ratio:.2f}" for ratio in ratios))


def runs_table(folders: Sequence[Path]) -> Iterator[str]:
    """Yield accuracy and bits of runs."""
    yield row(
        "config", "upstream", "final accuracy", "best", "bits up", "vs FedAvg", "vs dense SGD"
    )
    yield "|---" * 7 + "|"
    for path in folders:
        folder = RunFolder.open(path)
        summary, upstream = folder.summary(), config.load(path / "config.yaml").upstream
        assert summary is not None, f"{path}: the run has no summary"
        options = upstream.model_dump(exclude_defaults=True, exclude={"name"})
        shown = ", ".join(f"{key} {value}" for key, value in options.items())
        yield row(
            summary.name,
            f"{upstream.name} {shown}".strip(),
            f"{100 * summary.final_accuracy:.2f} %",
            f"{100 * summary.best_accuracy:.2f} %",
            human_bits(summary.up_bits),
            human_ratio(summary.up_ratio_fedavg),
            human_ratio(summary.up_ratio_dsgd),
        )


def cost_table(file: Path) -> Iterator[str]:
    """Yield times of the whole step and of decoding, in milliseconds and in copies."""
    yield row(
        "scheme", "density", "input", "step", "in copies", "decode", "in copies", "bits/entry"
    )
    yield "|---" * 8 + "|"
    for found in json.loads(file.read_text())["rows"]:
        yield row(
            found["scheme"],
            f"{found['density']:g}" if found["density"] else "",
            found["input"],
            f"{found['step_ms']:.1f} ms",
            f"{found['step_ms'] / found['copy_ms']:.1f}",
            f"{found['decode_ms']:.1f} ms",
            f"{found['decode_ms'] / found['copy_ms']:.1f}",
            f"{found['bits_per_entry']:.3f}",
        )


def row(*cells: str) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table, or put it between its marks in a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=("bits", "counts", "runs", "cost"))
    parser.add_argument("sources", nargs="*", type=Path)
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    lines = {
        "bits": bits_table,
        "counts": counts_table,
        "runs": lambda: runs_table(given.sources),
        "cost": lambda: cost_table(*given.sources),
    }[given.table]()
    text = "\n".join(lines) + "\n"
    if given.write is None:
        print(text, end="")
        return
    begin, end = f"<!-- {given.table}: begin -->\n", f"<!-- {given.table}: end -->\n"
    before, rest = given.write.read_text().split(begin)
    given.write.write_text(before + begin + text + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
