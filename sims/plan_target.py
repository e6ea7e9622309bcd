"""What a plan is for: so many rounds, so many local steps, or an accuracy that a run reached."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedsbc import config as configs
from fedsbc.compressors import SparseOptions
from fedsbc.config import Config
from fedsbc.errors import ConfigError
from fedsbc.ledger import Ledger
from fedsbc.records import RoundRecord
from fedsbc.run_folder import RunFolder

Point = tuple[float, float | None]
"""Local steps between two exchanges, and the density upstream."""


@dataclass(frozen=True)
class Finished:
    """A run that a plan learns from.

    Attributes:
        path: its folder.
        config: its config.
        records: its rounds.
        ledger: its messages.
    """

    path: Path
    config: Config
    records: Sequence[RoundRecord]
    ledger: Ledger

    @classmethod
    def read(cls, path: Path) -> "Finished":
        """Read a run folder.

        Raises:
            FedsbcError: it is not one, or its run has not ended.
        """
        folder = RunFolder.open(path)
        return cls(path, configs.load(path / "config.yaml"), folder.rounds(), folder.ledger())

    @property
    def local_steps(self) -> float:
        """Mean local steps between two exchanges."""
        if self.config.clients.local_steps is not None:
            return self.config.clients.local_steps
        participants = sum(record.participants for record in self.records)
        return sum(record.num_steps for record in self.records) / max(1, participants)

    @property
    def point(self) -> Point:
        """Where it lies in a grid."""
        upstream = self.config.upstream
        density = upstream.density if isinstance(upstream, SparseOptions) else None
        return self.local_steps, density

    def rounds_to(self, accuracy: float) -> int:
        """Return the first evaluated round with that accuracy.

        Raises:
            ConfigError: there is none.
        """
        found = [r.accuracy for r in self.records if r.accuracy is not None]
        for record in self.records:
            if record.accuracy is not None and record.accuracy >= accuracy:
                return record.round
        best = f"; its best is {max(found):g}" if found else ""
        raise ConfigError(f"{self.path}: never reached an accuracy of {accuracy:g}{best}")


@dataclass(frozen=True)
class Target:
    """How long a run has to be.

    Attributes:
        words: where that comes from.
        steps: local steps of each client that takes part in every round.
        measured: rounds that finished runs needed, by point.
    """

    words: str
    steps: float
    measured: dict[Point, int] = field(default_factory=dict)

    def num_rounds(self, point: Point) -> int:
        """Return the rounds at a point: as measured, or those with so many local steps."""
        if point in self.measured:
            return self.measured[point]
        return max(1, math.ceil(self.steps / point[0] - 1e-9))


def target_of(text: str, own_steps: float, runs: Sequence[Finished]) -> Target:
    """Return the target that a user names.

    Args:
        text: `rounds=150`, `steps=1500` or `accuracy=0.95`.
        own_steps: local steps between two exchanges in the config.
        runs: finished runs; needed for an accuracy.

    Raises:
        ConfigError: it is none of them, or no run reached the accuracy.
    """
    kind, _, value = text.partition("=")
    number = _number(value)
    if kind == "accuracy" and number is not None and 0 < number <= 1:
        if not runs:
            raise ConfigError(
                "--target accuracy=...: needs a finished run to learn from: --run RUN"
            )
        measured = {run.point: run.rounds_to(number) for run in runs}
        first, rounds = runs[0], measured[runs[0].point]
        steps = rounds * first.local_steps
        words = (
            f"accuracy {number:g}, which {first.path} reached after {rounds} rounds of "
            f"{first.local_steps:g} local steps"
        )
        return Target(words, steps, measured)
    if kind in ("rounds", "steps") and number is not None and number >= 1 and number % 1 == 0:
        if kind == "steps":
            return Target(f"{number:g} local steps", number)
        words = f"{number:g} rounds of {own_steps:g} local steps"
        return Target(words, number * own_steps)
    raise ConfigError(f"--target: given {text!r}, expected rounds=150, steps=1500 or accuracy=0.95")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
