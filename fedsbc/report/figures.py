"""The figures of a report: accuracy against rounds, bits and simulated seconds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fedsbc.report.runs import Point, Run

COLOURS = ("#0b5fa5", "#d1495b", "#2a7f62", "#8f5aa8", "#c77d0a", "#3a9fc0", "#7a6352", "#50565c")
"""One per run, dark enough for thin lines on white; told apart by the colour-blind as well."""

DASHES = ("solid", "dash", "dot", "dashdot")
"""Runs beyond the colours take them again with another dash."""

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_GRID, _INK = "#e6e8eb", "#3b4148"


@dataclass(frozen=True)
class Figure:
    """One figure: accuracy against something.

    Attributes:
        key: short name, unique on the page.
        title: what is drawn.
        axis: label of the horizontal axis, with unit.
        meaning: what the horizontal axis says: unit, direction, and over whom it is summed.
        value: the horizontal coordinate of a point.
        log: whether the horizontal axis is logarithmic; points at zero are then left out.
        unit: what follows a number of the axis.
    """

    key: str
    title: str
    axis: str
    meaning: str
    value: Callable[[Point], float]
    log: bool
    unit: str


def figures(runs: Sequence[Run]) -> list[Figure]:
    """Return the figures that these runs have data for."""
    drawn = [
        Figure(
            "rounds",
            "Accuracy against rounds",
            "round",
            "Rounds since the start of the run.",
            lambda point: point.round,
            False,
            "",
        ),
        Figure(
            "up",
            "Accuracy against upstream bits",
            "bits up, all clients, log scale",
            "Payload bits from all clients to the server, summed over the rounds so far, "
            "on a logarithmic axis.",
            lambda point: point.up_bits,
            True,
            "bit",
        ),
        _downstream(runs),
    ]
    if any(run.simulated_s for run in runs):
        drawn.append(_simulated(runs))
    return drawn


def _downstream(runs: Sequence[Run]) -> Figure:
    """Return the downstream figure; its axis is logarithmic where the runs lie far apart."""
    ends = [run.down_bits for run in runs if run.down_bits]
    log = len(ends) > 1 and max(ends) > 10 * min(ends)
    return Figure(
        "down",
        "Accuracy against downstream bits",
        "bits down, all clients" + (", log scale" if log else ""),
        "Payload bits from the server to all clients, summed over the rounds so far"
        + (", on a logarithmic axis." if log else "."),
        lambda point: point.down_bits,
        log,
        "bit",
    )


def _simulated(runs: Sequence[Run]) -> Figure:
    """Return the figure against simulated time, in the unit that suits the longest run."""
    longest_s = max(run.simulated_s for run in runs)
    units = [("seconds", 1), ("minutes", 60), ("hours", 3600), ("days", 86_400)]
    unit, size_s = next(((u, s) for u, s in reversed(units) if longest_s >= 3 * s), units[0])
    return Figure(
        "time",
        "Accuracy against simulated time",
        f"simulated {unit}",
        f"Simulated {unit} that the rounds so far would take on the configured network and "
        "devices; runs without a network are not drawn.",
        lambda point: point.simulated_s / size_s,
        False,
        f" {unit}",
    )


def draw(figure: Figure, runs: Sequence[Run]) -> Any:
    """Return the plotly figure, with one trace per run in the order of the runs."""
    import plotly.graph_objects as go

    drawing = go.Figure()
    for index, run in enumerate(runs):
        chosen = [point for point in run.points if not figure.log or figure.value(point) > 0]
        if figure.key == "time" and not run.simulated_s:
            chosen = []
        drawing.add_trace(_trace(go, figure, run, chosen, index))
    axis = {"gridcolor": _GRID, "linecolor": _GRID, "zeroline": False, "automargin": True}
    drawing.update_layout(
        template="none",
        height=340,
        margin={"l": 52, "r": 14, "t": 10, "b": 46},
        showlegend=False,
        hovermode="closest",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": _FONT, "size": 13, "color": _INK},
        xaxis=axis | _scale(figure),
        yaxis=axis | {"tickformat": ".0%", "nticks": 7},
    )
    return drawing


def _trace(go: Any, figure: Figure, run: Run, points: Sequence[Point], index: int) -> Any:
    """Return one run's line; markers where the points are few."""
    turn = index // len(COLOURS)
    number = "%{x:.4s}bit" if figure.unit == "bit" else f"%{{x:,.4~g}}{figure.unit}"
    at = "" if figure.key == "rounds" else f" at {number}"
    return go.Scatter(
        x=[figure.value(point) for point in points],
        y=[point.accuracy for point in points],
        customdata=[point.round for point in points],
        name=run.label,
        mode="lines" if len(points) > 40 else "lines+markers",
        marker={"size": 5},
        line={"color": colour(index), "width": 2, "dash": DASHES[turn % len(DASHES)]},
        hovertemplate=f"%{{y:.2%}}{at}, round %{{customdata}}",
    )


def _scale(figure: Figure) -> dict[str, Any]:
    """Return the settings of the horizontal axis."""
    title = {"text": figure.axis, "standoff": 8, "font": {"size": 13}}
    scale: dict[str, Any] = {"title": title, "nticks": 7, "rangemode": "tozero"}
    if figure.unit == "bit":
        scale |= {"tickformat": "~s", "ticksuffix": "bit"}
    if figure.log:
        scale |= {"type": "log", "dtick": 1}
    return scale


def colour(index: int) -> str:
    """Return the colour of the run at that place."""
    return COLOURS[index % len(COLOURS)]
