"""A plan for people: the grid, the one recommended, and how its seconds come about."""

from collections.abc import Sequence

from fedsbc.config import Config
from fedsbc.units import MISSING, human_bits, human_seconds

from .plan_payloads import Payloads, Shares
from .plan_target import Target
from .planning import TERMS, Prediction

HEADINGS = ("local steps", "density", "rounds", "up", "down", "a round", "in all")


def grid_text(predictions: Sequence[Prediction], best: Prediction) -> str:
    """Return the table of a grid; the recommended line is marked."""
    rows = [HEADINGS, *(_cells(prediction, best) for prediction in predictions)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(lines)


def _cells(prediction: Prediction, best: Prediction) -> tuple[str, ...]:
    mark = " <" if prediction is best else "  "
    return (
        f"{prediction.local_steps:g}",
        MISSING if prediction.density is None else f"{prediction.density:g}",
        f"{prediction.num_rounds:,}{'' if prediction.is_measured else '*'}",
        human_bits(prediction.up_bits),
        human_bits(prediction.down_bits),
        f"{prediction.seconds / prediction.num_rounds:.3g} s",
        human_seconds(prediction.seconds) + mark,
    )


def header_text(config: Config, num_params: int, target: Target) -> str:
    """Return what is planned."""
    profile = config.network.profile
    return (
        f"{config.name} over {profile}: {config.clients.count} clients, {config.cohort_size} a "
        f"round; {config.model.name}, {num_params:,} parameters\n"
        f"target: {target.words}"
    )


def notes_text(target: Target, shares: Shares) -> str:
    """Return what the table takes for granted."""
    lines = [
        "up, down: payload bits of one client in one round, on average.",
        f"* assumes that {target.steps:,.0f} local steps are enough at every point; a run tells.",
    ]
    if shares == Shares():
        lines.append(
            "Payloads are expected ones; --run RUN takes what a run of the scheme measured."
        )
    else:
        lines.append(
            f"Payloads: {shares.up:.3f} (up) and {shares.down:.3f} (down) of the expected bits, as "
            "measured in the run."
        )
    return "\n".join(lines)


def arithmetic_text(config: Config, best: Prediction, expected: Payloads) -> str:
    """Return how the seconds of the recommended point come about."""
    up, down, full = expected.up, expected.down, expected.full
    if config.downstream.name == "none":
        what = f"lossless sum of {config.cohort_size} updates"
    else:
        what = config.downstream.name
    lines = [
        f"recommended: {_point(best)}: {human_seconds(best.seconds)} in all",
        "",
        f"an update ({config.upstream.name}): {sum(up.kept):,.0f} of {expected.num_entries:,} "
        f"entries: {human_bits(up.body_bits)} + header {human_bits(up.header_bits)} "
        f"= {human_bits(up.payload_bits)}",
        f"a version ({what}): {sum(down.kept):,.0f} entries: "
        f"{human_bits(down.body_bits)} + header {human_bits(down.header_bits)} "
        f"= {human_bits(down.payload_bits)}; a full model: {human_bits(full.payload_bits)}",
    ]
    if expected.buffer_bits:
        lines.append(f"float buffers beside each: {human_bits(expected.buffer_bits)}")
    parts = " + ".join(
        f"{name} {part:.4g}" for name, part in zip(TERMS, best.terms, strict=True) if part
    )
    lines.append(
        f"a round, its slowest client: {parts or '0'} = {sum(best.terms):.4g} s on average"
    )
    if best.num_at_deadline:
        lines.append(f"{best.num_at_deadline} of the rounds end at the deadline instead")
    mean_s = best.seconds / best.num_rounds
    lines.append(f"all of it: {best.num_rounds:,} rounds x {mean_s:.4g} s = {best.seconds:,.2f} s")
    return "\n".join(lines)


def _point(best: Prediction) -> str:
    density = "" if best.density is None else f", density {best.density:g}"
    return f"{best.local_steps:g} local steps{density}"
