"""`fedsbc deploy`: the same experiment on real SuperNodes."""

from pathlib import Path
from typing import Annotated

import typer


def deploy_local_command(
    config: Annotated[Path, typer.Option(metavar="CONFIG", help="The experiment, a YAML file.")],
    nodes: Annotated[
        int | None, typer.Option(min=1, help="SuperNodes to start; sets clients.count.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a key: upstream.density=0.001."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run folder; default: runs/<name>.")
    ] = None,
) -> None:
    """Run an experiment on a SuperLink and SuperNodes that are started on this machine.

    Certificates and keys are made for this run: TLS and node authentication are on. Each SuperNode
    holds its own samples in a file. Everything that was started is stopped at the end.
    """
    from fedsbc import config as configs
    from sims.commands.run import report
    from sims.deploy.local import run

    count = [] if nodes is None else [f"clients.count={nodes}"]
    loaded = configs.load(config, [*(overrides or ()), *count, "engine.kind=deploy"])
    folder = out or Path("runs") / loaded.name
    run(loaded, folder)
    report(folder)


def deploy_data_command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The experiment, a YAML file.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder for the files.")],
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a key: clients.count=3."),
    ] = None,
) -> None:
    """Write the samples of each client of an experiment to a file for its device.

    A device reads its file with --node-config 'data="client-00000.npz" partition-id=0'.
    """
    from fedsbc import config as configs
    from fedsbc.errors import ConfigError
    from sims.deploy.data import write_device_files

    loaded = configs.load(config, overrides or ())
    if out.exists():
        raise ConfigError(f"{out}: exists already; name another folder with --out, or remove it")
    files = write_device_files(loaded, out)
    typer.echo(f"{len(files)} files: {files[0]} ... {files[-1]}")
