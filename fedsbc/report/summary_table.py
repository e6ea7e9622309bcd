"""The table of runs: the same columns on the terminal and on the page."""

from collections.abc import Sequence

from fedsbc.report.runs import Run
from fedsbc.units import MISSING, human_bits, human_ratio, human_seconds, human_share

Column = tuple[str, str]
"""A column's group and its name within the group."""


def columns(runs: Sequence[Run]) -> list[Column]:
    """Return the columns after the run's name; simulated time only where a run has it."""
    always = [
        ("accuracy", "best"),
        ("accuracy", "final"),
        ("bits up, all clients", "total"),
        ("bits up, all clients", "vs FedAvg"),
        ("bits up, all clients", "vs dense SGD"),
        ("bits down, all clients", "total"),
        ("bits down, all clients", "vs FedAvg"),
        ("time", "wall"),
    ]
    if any(run.simulated_s for run in runs):
        always.insert(-1, ("time", "simulated"))
    return always


def cells(run: Run, wanted: Sequence[Column]) -> list[str]:
    """Return the run's figures for those columns."""
    ended = run.summary
    values = {
        ("accuracy", "best"): human_share(run.best_accuracy),
        ("accuracy", "final"): human_share(run.final_accuracy),
        ("bits up, all clients", "total"): human_bits(run.up_bits),
        ("bits up, all clients", "vs FedAvg"): human_ratio(
            ended.up_ratio_fedavg if ended else None
        ),
        ("bits up, all clients", "vs dense SGD"): human_ratio(
            ended.up_ratio_dsgd if ended else None
        ),
        ("bits down, all clients", "total"): human_bits(run.down_bits),
        ("bits down, all clients", "vs FedAvg"): human_ratio(
            ended.down_ratio_fedavg if ended else None
        ),
        ("time", "simulated"): human_seconds(run.simulated_s) if run.simulated_s else MISSING,
        ("time", "wall"): human_seconds(run.wall_s),
    }
    return [values[column] for column in wanted]


def unfinished(run: Run) -> bool:
    """Whether the run has not come to its end."""
    return run.summary is None or not run.summary.completed
