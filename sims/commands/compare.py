"""`fedsbc compare RUN...`: one report over several runs."""

from pathlib import Path
from typing import Annotated

import typer

from fedsbc.errors import ConfigError


def compare_command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The report, one HTML page.")],
) -> None:
    """Compare runs: a table here, and one page as a report.

    RUN... are run folders; the page needs no network and no other file.
    """
    if out.suffix != ".html":
        raise ConfigError(f"{out}: expected the page to write, a name that ends in .html")
    if out.is_dir():
        raise ConfigError(f"{out}: is a folder; expected the file to write, like {out}/report.html")
    from fedsbc.report import table, write_report
    from fedsbc.run_folder import RunFolder

    folders = [RunFolder.open(run) for run in runs]
    write_report(folders, out)
    typer.echo(table(folders))
    typer.echo(f"Report: {out}")
