"""The report: one HTML file that needs nothing else, no network included."""

from collections.abc import Sequence
from pathlib import Path

from fedsbc.errors import ConfigError
from fedsbc.files import write_text
from fedsbc.report import html, sections
from fedsbc.report.figures import Figure, draw, figures
from fedsbc.report.runs import Run, read_runs
from fedsbc.report.style import SCRIPT, STYLE
from fedsbc.run_folder import RunFolder


def write_report(folders: Sequence[RunFolder], out: Path) -> None:
    """Write the report of some runs, in the order given, as one self-contained page.

    Args:
        folders: the runs; a run that has not ended is marked as such.
        out: the HTML file; its folder is made if need be, an older report is replaced.

    Raises:
        ConfigError: no run is given, one is given twice, or `out` cannot be written.
        RunError: a folder's files cannot be read.
    """
    runs = read_runs(folders)
    page = render(runs)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text(out, page)
    except OSError as error:
        raise ConfigError(f"{out}: the report cannot be written ({error})") from error


def render(runs: Sequence[Run]) -> str:
    """Return the page; the same runs give the same text."""
    from plotly.offline import get_plotlyjs

    title = runs[0].label if len(runs) == 1 else f"{', '.join(run.label for run in runs)} compared"
    body = [
        f"<h1>{html.text(title)}</h1>",
        sections.lead(runs),
        sections.outcome(runs),
        sections.to_reach(runs),
        _figures(runs),
        sections.downstream(runs),
        sections.where_bits_went(runs),
        sections.settings(runs),
        "<footer>Written by fedsbc from the runs' own files: <code>rounds.jsonl</code>, "
        "<code>ledger.parquet</code>, <code>summary.json</code>.</footer>",
    ]
    head = (
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.text(title)}</title><style>{STYLE}</style>"
        f"<script>{get_plotlyjs()}</script>"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n'
        f"<body><main>{''.join(body)}</main><script>{SCRIPT}</script></body></html>\n"
    )


def _figures(runs: Sequence[Run]) -> str:
    """Return all figures under one legend."""
    drawn = "".join(_figure(figure, runs) for figure in figures(runs))
    return f'<h2>Accuracy</h2>{_legend(runs)}<div class="figures">{drawn}</div>'


def _legend(runs: Sequence[Run]) -> str:
    """Return one button per run, which shows or hides it in every figure."""
    if len(runs) == 1:
        return ""
    buttons = "".join(
        f'<button type="button" aria-pressed="true">{html.run_name(index, run)}</button>'
        for index, run in enumerate(runs)
    )
    return f'<div class="legend" role="group" aria-label="Runs">{buttons}</div>'


def _figure(figure: Figure, runs: Sequence[Run]) -> str:
    """Return one figure with its title and what it means."""
    plot = draw(figure, runs).to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=f"figure-{figure.key}",
        default_height="340px",
        config={"responsive": True, "displaylogo": False, "displayModeBar": False},
    )
    caption = f"{figure.meaning} Accuracy: share of test samples that the model gets right."
    return (
        f'<figure><h3>{html.text(figure.title)}</h3><div class="plot">{plot}</div>'
        f"<figcaption>{html.text(caption)}</figcaption></figure>"
    )
