"""Learning-rate schedules: a factor for each local step, whatever the communication delay.

A step number counts the SGD steps that a client would have taken so far in the run: with n local
steps a round, round t starts at step (t - 1) n. So 100 rounds of 10 steps and 10 rounds of 100
steps have the same learning rates.

Source: Sattler et al., arXiv 1805.08768, setup: schedules in iterations, not in rounds.
"""

import math
from bisect import bisect_right
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fedsbc.choices import choose
from fedsbc.options import Fraction, Options, PositiveFloat, PositiveInt


class ScheduleOptions(Options):
    """Options of a schedule; subclasses narrow `kind` to a `Literal`."""

    kind: str

    def factor(self, step: int) -> float:
        """Return what the learning rate is multiplied by at a local step, counted from 0."""
        raise NotImplementedError


class ConstantOptions(ScheduleOptions):
    """Options of `constant`: the learning rate as it is."""

    kind: Literal["constant"] = "constant"

    def factor(self, step: int) -> float:
        """Return 1."""
        return 1.0


class StepOptions(ScheduleOptions):
    """Options of `step`: one more multiplication at each milestone.

    Attributes:
        milestones: local steps, strictly increasing.
        decay: what the learning rate is multiplied by at each.
    """

    kind: Literal["step"] = "step"
    milestones: Annotated[list[PositiveInt], Field(min_length=1)]
    decay: PositiveFloat = 0.1

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.milestones != sorted(set(self.milestones)):
            raise ValueError(f"`milestones` must increase, given {self.milestones}")
        return self

    def factor(self, step: int) -> float:
        """Return decay to the power of the number of milestones reached."""
        return float(self.decay ** bisect_right(self.milestones, step))


class CosineOptions(ScheduleOptions):
    """Options of `cosine`: half a cosine from 1 down to `final`, then constant.

    Attributes:
        steps: local steps until `final` is reached.
        final: the last factor, in [0, 1].
    """

    kind: Literal["cosine"] = "cosine"
    steps: PositiveInt
    final: Fraction = 0.0

    def factor(self, step: int) -> float:
        """Return the factor at a local step."""
        turn = math.pi * min(step, self.steps) / self.steps
        return self.final + (1 - self.final) * (1 + math.cos(turn)) / 2


TABLE: dict[str, type[ScheduleOptions]] = {
    "constant": ConstantOptions,
    "cosine": CosineOptions,
    "step": StepOptions,
}
"""The schedules by their kinds in configs."""


def options_for(kind: str) -> type[ScheduleOptions]:
    """Return the options class of the schedule of that kind.

    Raises:
        ConfigError: no such kind; the message lists the known ones.
    """
    return choose("schedule", kind, TABLE)
