"""`fedsbc resume RUN`: go on with a run that was stopped, or extend one that ended."""

from pathlib import Path
from typing import Annotated

import typer


def resume_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")],
    rounds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Rounds in all; default: those of the config."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Go on although versions differ; bytes may then too.")
    ] = False,
) -> None:
    """Go on with a run from its last checkpoint.

    RUN is the folder of a run that was stopped or killed, or of one that ended and shall have more
    rounds (--rounds). What it wrote after the checkpoint is cut off, and the run ends as if it had
    never been stopped: same weights, same ledger.
    """
    from fedsbc.checkpoint import plan_resume
    from fedsbc.run_folder import RunFolder
    from sims.commands.run import run_and_report

    plan = plan_resume(RunFolder.open(run), rounds, force=force)
    for note in plan.notes:
        typer.echo(note, err=True)
    typer.echo(f"going on after round {plan.generation.round}", err=True)
    run_and_report(plan.config, run, plan.generation.path)
