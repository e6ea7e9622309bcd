"""What a report knows of a run: read from its folder once, as numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from fedsbc.errors import ConfigError, RunError
from fedsbc.ledger import Ledger
from fedsbc.records import RoundRecord, Summary
from fedsbc.run_folder import RunFolder


@dataclass(frozen=True)
class Point:
    """The run at one evaluated round; bits and seconds since the start, over all clients."""

    round: int
    accuracy: float
    up_bits: int
    down_bits: int
    simulated_s: float


@dataclass(frozen=True)
class Run:
    """One run of a report.

    Attributes:
        label: its name, or name and folder where two runs share a name.
        points: the evaluated rounds, in order.
        records: all rounds, in order.
        summary: the outcome; None if the run has not ended.
        ledger: every message; None if the run has not written it yet.
        settings: the resolved config, flat: `clients.count` -> 100.
    """

    label: str
    points: tuple[Point, ...]
    records: tuple[RoundRecord, ...]
    summary: Summary | None
    ledger: Ledger | None
    settings: dict[str, Any]

    @property
    def up_bits(self) -> int:
        """Payload bits up so far, over all clients."""
        return self.summary.up_bits if self.summary else sum(r.up_bits for r in self.records)

    @property
    def down_bits(self) -> int:
        """Payload bits down so far, over all clients."""
        return self.summary.down_bits if self.summary else sum(r.down_bits for r in self.records)

    @property
    def best_accuracy(self) -> float | None:
        """Highest accuracy of an evaluated round."""
        return max((point.accuracy for point in self.points), default=None)

    @property
    def final_accuracy(self) -> float | None:
        """Accuracy of the last evaluated round."""
        return self.points[-1].accuracy if self.points else None

    @property
    def simulated_s(self) -> float:
        """Simulated seconds so far; 0.0 without a network."""
        return sum(record.simulated_s for record in self.records)

    @property
    def wall_s(self) -> float:
        """Seconds on the machine so far."""
        return self.summary.wall_s if self.summary else sum(r.wall_s for r in self.records)

    def first_at(self, accuracy: float) -> Point | None:
        """Return the first evaluated round with at least that accuracy."""
        return next((point for point in self.points if point.accuracy >= accuracy), None)


def read_runs(folders: Sequence[RunFolder]) -> list[Run]:
    """Read the runs, in the order given.

    Raises:
        ConfigError: no run is given, or one is given twice.
        RunError: a folder's files cannot be read.
    """
    if not folders:
        raise ConfigError("no run to report; name at least one run folder")
    paths = [folder.path.resolve() for folder in folders]
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise ConfigError(f"{twice}: named twice; name each run folder once")
    runs = [_read(folder) for folder in folders]
    names = [run.label for run in runs]
    return [
        _relabelled(run, folder) if names.count(run.label) > 1 else run
        for run, folder in zip(runs, folders, strict=True)
    ]


def differing_settings(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Return the settings that are not the same in all runs: key -> value per run.

    A key that a run does not have stands as None.
    """
    keys = sorted({key for run in runs for key in run.settings})
    values = {key: [run.settings.get(key) for run in runs] for key in keys if key != "name"}
    return {key: each for key, each in values.items() if any(v != each[0] for v in each)}


def shared_settings(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the settings that are the same in all runs."""
    different = differing_settings(runs)
    return {k: v for k, v in runs[0].settings.items() if k not in different and k != "name"}


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one, with dotted keys.

    >>> flatten({"data": {"name": "mnist-5k"}, "seed": 0})
    {'data.name': 'mnist-5k', 'seed': 0}
    """
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _read(folder: RunFolder) -> Run:
    """Read one run."""
    settings = flatten(folder.config())
    records = tuple(folder.rounds())
    if not records:
        raise RunError(f"{folder.path}: no round has ended yet, so there is nothing to report")
    return Run(
        label=str(settings.get("name", folder.path.name)),
        points=_points(records),
        records=records,
        summary=folder.summary() if folder.has_summary() else None,
        ledger=folder.ledger() if (folder.path / "ledger.parquet").exists() else None,
        settings=settings,
    )


def _points(records: Sequence[RoundRecord]) -> tuple[Point, ...]:
    """Return the evaluated rounds with running sums over all rounds."""
    up_bits = accumulate(record.up_bits for record in records)
    down_bits = accumulate(record.down_bits for record in records)
    simulated_s = accumulate(record.simulated_s for record in records)
    sums = zip(records, up_bits, down_bits, simulated_s, strict=True)
    return tuple(
        Point(record.round, record.accuracy, up, down, seconds)
        for record, up, down, seconds in sums
        if record.accuracy is not None
    )


def _relabelled(run: Run, folder: RunFolder) -> Run:
    """Return the run with its folder in the label."""
    return Run(**{**vars(run), "label": f"{run.label} ({folder.path})"})
