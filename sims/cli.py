"""The command line: `fedsbc COMMAND`. Each command is a file of `sims.commands`.

Nothing heavy is imported here or at the top of a command's file, so that `--help` is quick.
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
import typer.core

from sims.bench.compressors import compressors_command
from sims.bench.engine import engine_command
from sims.commands.compare import compare_command
from sims.commands.deploy import deploy_data_command, deploy_local_command
from sims.commands.inspect import inspect_command
from sims.commands.plan import plan_command
from sims.commands.resume import resume_command
from sims.commands.run import run_command
from sims.errors import exit_status, leave

typer.core.HAS_RICH = False  # plain help: drawing it with rich takes longer than all the rest

app = typer.Typer(
    name="fedsbc",
    help="Federated learning with sparse binary compression, where every bit is counted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    suggest_commands=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run_command)
app.command("resume")(resume_command)
app.command("compare")(compare_command)
app.command("inspect")(inspect_command)
app.command("plan")(plan_command)

bench = typer.Typer(help="Benchmarks: what things cost on this machine.", no_args_is_help=True)
bench.command("compressors")(compressors_command)
bench.command("engine")(engine_command)
app.add_typer(bench, name="bench")

deploy = typer.Typer(help="Real SuperLinks and SuperNodes, with TLS.", no_args_is_help=True)
deploy.command("local")(deploy_local_command)
deploy.command("data")(deploy_data_command)
app.add_typer(deploy, name="deploy")


def _version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        from fedsbc import __version__

        typer.echo(f"fedsbc {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; after any command.")
    ] = False,
) -> None:
    """Options that stand before the command; `--debug` is taken out by `run` below."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status.

    Args:
        arguments: without the program's name; `--debug` may stand anywhere.
    """
    others = [argument for argument in arguments if argument != "--debug"]
    command = typer.main.get_command(app)

    def typed() -> int | None:
        status: int | None = command.main(others, prog_name="fedsbc", standalone_mode=False)
        return status

    return exit_status(typed, debug=len(others) < len(arguments))


def main() -> None:
    """Run the command line of this process; the entry point of `fedsbc`."""
    leave(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
