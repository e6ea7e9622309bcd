"""The base of every options class: what a component accepts in a config is its own schema."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Options(BaseModel):
    """Strict, immutable options: an unknown key or a wrong type is an error.

    Every component (compressor, model, data set, partition, optimiser) declares a subclass
    whose field `name` is a `Literal` of its name in configs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Density = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
"""Fraction p = k/d of the entries that are sent, in (0, 1]."""

Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A number in [0, 1]."""

PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A finite number above zero."""

NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A finite number, zero or above."""

PositiveInt = Annotated[int, Field(gt=0)]
"""A whole number above zero."""
