"""`fedsbc inspect FILE`: explain the bytes of a payload."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsbc.errors import ConfigError, WireError

if TYPE_CHECKING:
    from fedsbc.layout import Layout
    from fedsbc.models.base import ModelOptions


def inspect_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A payload, as a run keeps it.")],
    run: Annotated[
        Path | None, typer.Option("--run", metavar="RUN", help="The run folder that it is from.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model that it is for.")
    ] = None,
) -> None:
    """Explain a payload: its header, where its bits go, and a line for each tensor.

    FILE is a payload, as `debug.keep_payloads: true` leaves it in the run folder. The tensors are
    those of RUN, or of the model NAME with its default options; without either, and where FILE
    lies in no run folder, only the header can be read.
    """
    if run is not None and model is not None:
        raise ConfigError("--run and --model: give one of them")
    data = _read(file)
    options = _options_of(file, run, model)
    try:
        layout = _layout(options, data) if options is not None else None
    except WireError as error:
        raise WireError(f"{file}: {error}") from error
    typer.echo(inspect(file, layout))
    if layout is None:
        typer.echo("The blocks need the tensors: give --run RUN or --model NAME.")


def inspect(file: Path, layout: "Layout | None") -> str:
    """Return what the payload in a file says, as text.

    Args:
        file: the payload.
        layout: its tensors, or None to read the header alone.

    Raises:
        ConfigError: the file cannot be read.
        WireError: it is not a payload, or not one for that layout.
    """
    from fedsbc.payload.explain import explain

    try:
        return explain(_read(file), layout)
    except WireError as error:
        raise WireError(f"{file}: {error}") from error


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from error


def _options_of(file: Path, run: Path | None, model: str | None) -> "ModelOptions | None":
    """Return the options of the model that the payload is for, if it can be known."""
    from fedsbc import config, models

    if model is not None:
        return models.options_for(model)(name=model)
    if run is None:
        above = file.resolve().parent.parent
        run = above if (above / "config.yaml").is_file() else None
    if run is None:
        return None
    if not (run / "config.yaml").is_file():
        raise ConfigError(f"{run}: is no run folder; it holds no config.yaml")
    options: ModelOptions = config.load(run / "config.yaml").model
    return options


def _layout(options: "ModelOptions", data: bytes) -> "Layout":
    """Return the layout of the model's parameters, or of its buffers if the payload is of them."""
    from fedsbc import models
    from fedsbc.flat_model import FlatModel
    from fedsbc.payload.frame import read_header

    model = FlatModel(models.build(options, seed=0))
    found = read_header(data).layout_hash
    return model.buffer_layout if found == model.buffer_layout.hash else model.layout
