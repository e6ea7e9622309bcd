"""`fedsbc run CONFIG`: run one config."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsbc.errors import ConfigError, FedsbcError
from sims.errors import unexpected

if TYPE_CHECKING:
    from fedsbc.config import Config


def run_command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML file.")],
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a key: upstream.density=0.001."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run folder; default: runs/<name>.")
    ] = None,
) -> None:
    """Run the experiment that a config describes.

    CONFIG is a YAML file; --set may be given several times. What the run leaves behind is in its
    folder: config, rounds, ledger, summary, model and report.
    """
    from fedsbc import config as configs

    loaded = configs.load(config, overrides or ())
    folder = out or Path("runs") / loaded.name
    if folder.exists():
        raise ConfigError(
            f"{folder}: exists already; name another folder with --out, remove this one, "
            f"or go on with its run: fedsbc resume {folder}"
        )
    run_and_report(loaded, folder)


def run_and_report(config: "Config", folder: Path, generation: Path | None = None) -> None:
    """Run, or go on from a checkpoint; then print the line of figures."""
    try:
        from sims.run import run

        run(config, folder, generation)
    except FedsbcError:
        raise
    except Exception as error:
        raise unexpected(error, folder) from error
    report(folder)


def report(folder: Path) -> None:
    """Print a run's line of figures, and where its report is."""
    from fedsbc.report import table
    from fedsbc.run_folder import RunFolder

    typer.echo(table([RunFolder.open(folder)]))
    typer.echo(f"Report: {folder / 'report.html'}")
