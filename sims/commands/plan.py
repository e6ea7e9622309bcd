"""`fedsbc plan`: how long a run will take on a network, over a grid of delays and densities."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsbc.errors import ConfigError

if TYPE_CHECKING:
    from fedsbc.config import Config
    from sims.planning import Prediction


def plan_command(
    config: Annotated[Path, typer.Option(metavar="FILE", help="The config, a YAML file.")],
    network: Annotated[
        str | None, typer.Option(metavar="PROFILE", help="lan, wifi, 5g, 4g, 3g or lora.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="KIND=N", help="rounds=150, steps=1500 or accuracy=0.95."),
    ] = None,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--run", metavar="RUN", help="A finished run to learn from."),
    ] = None,
    local_steps: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Grid; default: n/10, n, 10 n.")
    ] = None,
    densities: Annotated[
        str | None, typer.Option(metavar="P,P,...", help="Grid; default: p/10, p, 10 p.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a key: upstream.density=0.001."),
    ] = None,
) -> None:
    """Predict the seconds a run takes on a network, and recommend a delay and a density.

    Nothing is trained: the rounds are played again with the run's own cohorts and links, and with
    expected bits. --target says how long the run is to be; with an accuracy, a finished run (--run)
    says how many rounds that took. A run also says what its payloads really were.
    """
    from fedsbc import config as configs

    chosen, given = [] if network is None else _on_network(network), overrides or []
    if chosen and any(each.startswith("network.profile=") for each in given):
        raise ConfigError("--network and --set network.profile=...: give one of them")
    loaded = configs.load(config, [*chosen, *given])
    if loaded.network.profile == "none":
        raise ConfigError(f"{config}: network.profile: none takes no time; name one: --network 4g")
    typer.echo(_plan(loaded, target, runs or [], local_steps, densities))


def _on_network(profile: str) -> list[str]:
    """Return the overrides that put a config on a network with nothing but a name.

    Speeds of devices, spread and deadline stay as the config has them.

    Raises:
        ConfigError: there is no such network.
    """
    from fedsbc.choices import choose
    from fedsbc.network import PROFILES

    choose("network profile", profile, PROFILES)
    rates = ("uplink_bit_s", "downlink_bit_s", "latency_s")
    return [f"network.profile={profile}", *(f"network.{rate}=null" for rate in rates)]


def _plan(
    config: "Config",
    target: str | None,
    run_paths: list[Path],
    local_steps: str | None,
    densities: str | None,
) -> str:
    """Return the whole plan as text."""
    from dataclasses import replace

    from fedsbc import models
    from fedsbc.flat_model import FlatModel
    from sims import plan_text
    from sims.plan_payloads import Shares, measured_shares, payloads
    from sims.plan_target import Finished, target_of
    from sims.planning import predict, steps_of, with_point

    model = FlatModel(models.build(config.model, config.seed))
    runs = [Finished.read(path) for path in run_paths]
    for path, finished in zip(run_paths, runs, strict=True):
        scheme = finished.config.upstream.name
        if scheme != config.upstream.name:
            raise ConfigError(
                f"{path}: a run with upstream `{scheme}` says nothing about "
                f"`{config.upstream.name}`; expected a run of the same scheme"
            )
    own = steps_of(config)
    own_steps = sum(own.values()) / len(own)
    goal = target_of(target or f"rounds={config.rounds}", own_steps, runs)
    layouts = model.layout, model.buffer_layout
    shares = Shares()
    if runs:
        expected = payloads(runs[0].config, *layouts, shares)
        shares = measured_shares(runs[0].ledger, expected)
    points: list[tuple[Prediction, Config]] = []
    for steps, density in _grid(config, local_steps, densities):
        at = with_point(config, steps, density)
        by_client = steps_of(at)
        point = (sum(by_client.values()) / len(by_client), density)
        found = predict(at, payloads(at, *layouts, shares), goal.num_rounds(point), by_client)
        points.append((replace(found, is_measured=point in goal.measured), at))
    best, at = min(points, key=lambda pair: pair[0].seconds)
    return "\n\n".join(
        [
            plan_text.header_text(config, model.num_params, goal),
            plan_text.grid_text([found for found, _ in points], best),
            plan_text.notes_text(goal, shares),
            plan_text.arithmetic_text(at, best, payloads(at, *layouts, shares)),
        ]
    )


def _grid(
    config: "Config", local_steps: str | None, densities: str | None
) -> list[tuple[int | None, float | None]]:
    """Return the points: local steps (None: the config's epochs) and densities (None: no such)."""
    from fedsbc.compressors import SparseOptions

    n = config.clients.local_steps
    steps: list[int | None] = [None] if n is None else [*sorted({max(1, n // 10), n, 10 * n})]
    if local_steps is not None:
        steps = [int(value) for value in _numbers("--local-steps", local_steps, whole=True)]
    chosen: list[float | None] = [None]
    if densities is not None:
        chosen = list(_numbers("--densities", densities, whole=False))
    elif isinstance(config.upstream, SparseOptions):
        p = config.upstream.density
        chosen = [*sorted({float(f"{value:.6g}") for value in (p / 10, p, min(1.0, 10 * p))})]
    return [(step, density) for step in steps for density in chosen]


def _numbers(option: str, text: str, *, whole: bool) -> list[float]:
    """Return the numbers of a list, whole ones from 1 or fractions in (0, 1].

    Raises:
        ConfigError: one of them is not such a number.
    """
    found = []
    for part in text.split(","):
        try:
            number = float(part)
        except ValueError:
            number = 0.0
        if not (number >= 1 and number % 1 == 0 if whole else 0 < number <= 1):
            expected = "whole numbers: 1,10,100" if whole else "numbers in (0, 1]: 0.001,0.01"
            raise ConfigError(f"{option}: given {text!r}, expected {expected}")
        found.append(number)
    return sorted(set(found))
