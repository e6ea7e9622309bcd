"""The table of runs for a terminal."""

import io
from collections.abc import Sequence

from fedsbc.report.runs import Run, read_runs
from fedsbc.report.summary_table import cells, columns, unfinished
from fedsbc.run_folder import RunFolder

_HEADINGS = {
    ("accuracy", "best"): ("best", "acc."),
    ("accuracy", "final"): ("final", "acc."),
    ("bits up, all clients", "total"): ("bits up", "total"),
    ("bits up, all clients", "vs FedAvg"): ("up vs", "FedAvg"),
    ("bits up, all clients", "vs dense SGD"): ("vs dense", "SGD"),
    ("bits down, all clients", "total"): ("bits down", "total"),
    ("bits down, all clients", "vs FedAvg"): ("down vs", "FedAvg"),
    ("time", "simulated"): ("time", "simulated"),
    ("time", "wall"): ("time", "wall"),
}
NOTE = (
    "Bits are payload bits, summed over all clients and rounds. ×N: N times fewer than dense\n"
    "float32 at every exchange (FedAvg) or at every local step (dense SGD)."
)


def table(folders: Sequence[RunFolder]) -> str:
    """Return the table of runs as text, within 80 columns for short names.

    Raises:
        ConfigError: no run is given, or one is given twice.
        RunError: a folder's files cannot be read.
    """
    runs = read_runs(folders)
    wanted = columns(runs)
    header = [("", "run"), *(_HEADINGS[column] for column in wanted)]
    rows = [[_name(run), *cells(run, wanted)] for run in runs]
    try:
        drawn = _rich(header, rows)
    except ImportError:
        drawn = _plain(header, rows)
    notes = [NOTE]
    if any(unfinished(run) for run in runs):
        notes.append("* has not come to its end")
    return drawn + "\n".join(notes)


def _name(run: Run) -> str:
    """Return the run's label, marked if it has not ended."""
    return run.label + (" *" if unfinished(run) else "")


def _rich(header: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> str:
    """Draw the table with rich, which comes with Flower's command line."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawing = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for index, (group, name) in enumerate(header):
        text = Text(f"{group}\n{name}")
        drawing.add_column(text, justify="right" if index else "left", no_wrap=True)
    for row in rows:
        drawing.add_row(*map(Text, row))
    text_file = io.StringIO()
    console = Console(file=text_file, width=1000, color_system=None, legacy_windows=False)
    console.print(drawing)
    return _stripped(text_file.getvalue().splitlines())


def _plain(header: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> str:
    """Draw the table with spaces alone."""
    groups, names = zip(*header, strict=True)
    lines = [groups, names, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        [cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(pairs)]
        for pairs in (list(zip(line, widths, strict=True)) for line in lines)
    ]
    return _stripped(["  ".join(line) for line in padded])


def _stripped(lines: Sequence[str]) -> str:
    """Join lines without the spaces at their ends, and with one empty line after."""
    return "\n".join(line.rstrip() for line in lines) + "\n\n"
