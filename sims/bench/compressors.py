"""`fedsbc bench compressors`: what compression costs, in multiples of a copy of the same bytes."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsbc.errors import ConfigError

if TYPE_CHECKING:
    from fedsbc.compressors import Compressor
    from fedsbc.layout import Layout
    from sims.bench.measure import Measurement

LAYOUTS = ("one", "resnet50", "lenet5-caffe")

COLUMNS = (
    f"{'scheme':<18}{'density':>8} {'input':<13}{'copy ms':>8}{'step ms':>9}{'copies':>7}"
    f"{'decode ms':>10}{'copies':>7}{'torch.topk ms':>14}{'faster':>7}{'bits/entry':>11}"
)


def compressors_command(
    layout: Annotated[str, typer.Option(help=f"One of {', '.join(LAYOUTS)}.")] = "one",
    size: Annotated[int, typer.Option(min=1, help="Entries of layout `one`.")] = 25_600_000,
    density: Annotated[
        list[float] | None, typer.Option(help="Fraction sent; may be repeated [0.001, 0.01].")
    ] = None,
    scheme: Annotated[
        list[str] | None, typer.Option(help="Compressor, or `all`; may be repeated [sbc].")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="normal, heavy-tailed, ..., or `all` [normal]."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; medians are shown.")] = 5,
    json_path: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures there too.")
    ] = None,
) -> None:
    """Time compressors on one core: the whole step, decoding, and the step through torch.topk.

    `copies` is how many warm copies of the same float32 vector the time would pay for; the copy
    is taken in turn with the rest.
    """
    import torch

    from sims.bench.layouts import layout_of

    if layout not in LAYOUTS:
        raise ConfigError(f"--layout: expected one of {', '.join(LAYOUTS)}, got '{layout}'")
    if bad := [p for p in density or () if not 0 < p <= 1]:
        raise ConfigError(f"--density: expected a fraction above 0 and at most 1, got {bad[0]:g}")
    torch.set_num_threads(1)
    chosen = layout_of(layout, size)  # type: ignore[arg-type]  # just checked
    typer.echo(f"{chosen.size:,} entries in {len(chosen.tensors)} tensors, {repeats} repeats")
    typer.echo(COLUMNS)
    rows = []
    for name, compressor in _jobs(
        scheme or ["sbc"], density or [0.001, 0.01], inputs or ["normal"]
    ):
        rows.append(_measure(compressor, chosen, name, repeats))
        typer.echo(_line(rows[-1]))
    if json_path:
        _write(json_path, layout, repeats, rows)


def _jobs(
    schemes: list[str], densities: list[float], inputs: list[str]
) -> "Iterator[tuple[str, Compressor]]":
    """Yield (input, compressor): a scheme without a density comes once for each input."""
    from fedsbc.choices import choose
    from fedsbc.compressors import TABLE, make, options_for
    from sims.bench.inputs import INPUTS

    for name in INPUTS if "all" in inputs else inputs:
        choose("input", name, INPUTS)
        for scheme in TABLE if "all" in schemes else schemes:
            options = options_for(scheme)
            for density in densities if "density" in options.model_fields else [None]:
                given = {"name": scheme} | ({} if density is None else {"density": density})
                yield name, make(options.model_validate(given))


def _measure(compressor: "Compressor", layout: "Layout", name: str, repeats: int) -> "Measurement":
    import numpy as np

    from sims.bench.inputs import INPUTS
    from sims.bench.measure import Bench

    vector = INPUTS[name](np.random.default_rng(0), layout.size)
    return Bench(compressor, layout, vector).measure(name, repeats)


def _line(row: "Measurement") -> str:
    density = "" if row.density is None else f"{row.density:g}"
    rival = ("", "")
    if row.torch_ms is not None:
        rival = f"{row.torch_ms:.1f}", f"{row.torch_ms / row.step_ms:.1f}"
    return (
        f"{row.scheme:<18}{density:>8} {row.input:<13}{row.copy_ms:>8.2f}{row.step_ms:>9.2f}"
        f"{row.step_ms / row.copy_ms:>7.2f}{row.decode_ms:>10.2f}"
        f"{row.decode_ms / row.copy_ms:>7.2f}{rival[0]:>14}{rival[1]:>7}{row.bits_per_entry:>11.3f}"
    )


def _write(path: Path, layout: str, repeats: int, rows: "list[Measurement]") -> None:
    import json
    from dataclasses import asdict

    from fedsbc.environment import describe

    figures = {"environment": describe(), "layout": layout, "repeats": repeats}
    path.write_text(json.dumps({**figures, "rows": [asdict(row) for row in rows]}, indent=2) + "\n")
