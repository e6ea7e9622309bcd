"""What every model has in a config."""

from typing import Annotated, Literal

from pydantic import Field

from fedsbc.options import Options, PositiveInt


class ModelOptions(Options):
    """Options of a model beside its own.

    Attributes:
        name: the model; subclasses narrow it to a `Literal`.
        buffers: what happens to float buffers (BatchNorm statistics): `average` sends them
            dense with each exchange, counted; `local` leaves each client its own.
        input_shape: channels, height and width of one sample.
        num_classes: number of outputs.
    """

    name: str
    buffers: Literal["average", "local"] = "average"
    input_shape: list[PositiveInt] = Field(default=[1, 28, 28], min_length=3, max_length=3)
    num_classes: Annotated[int, Field(ge=2)] = 10
