"""What an optimiser says in a config: one options class for each."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fedsbc.choices import choose
from fedsbc.options import NonNegativeFloat, Options, PositiveFloat

Beta = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]


class OptimizerOptions(Options):
    """What every optimiser has in a config beside its own options.

    Attributes:
        name: the optimiser; subclasses narrow it to a `Literal`.
        lr: learning rate, before the schedule.
        weight_decay: this times the weights is added to the gradient.
        clip_norm: a gradient with a larger Euclidean norm is scaled down to it; null: never.
            It is applied before weight decay.
        keep_momentum: a client keeps its momentum between two rounds; else each round starts
            from zero.
        mask_momentum: momentum is set to zero at the positions that were sent. For Adam this is
            the first moment. Source: Lin et al., arXiv 1712.01887, momentum factor masking;
            adopted by SBC (arXiv 1805.08768).
    """

    name: str
    lr: PositiveFloat
    weight_decay: NonNegativeFloat = 0.0
    clip_norm: PositiveFloat | None = None
    keep_momentum: bool = False
    mask_momentum: bool = False

    @model_validator(mode="after")
    def _check_mask(self) -> Self:
        if self.mask_momentum and not self.keep_momentum:
            raise ValueError("`mask_momentum: true` needs `keep_momentum: true`")
        return self


class SgdOptions(OptimizerOptions):
    """Options of `sgd`.

    Attributes:
        momentum: factor of the momentum, in [0, 1).
        nesterov: look one step ahead along the momentum.
    """

    name: Literal["sgd"] = "sgd"
    momentum: Beta = 0.0
    nesterov: bool = False

    @model_validator(mode="after")
    def _check_momentum(self) -> Self:
        for key in ("nesterov", "keep_momentum"):
            if getattr(self, key) and not self.momentum:
                raise ValueError(f"`{key}: true` needs a `momentum` above 0")
        return self


class AdamOptions(OptimizerOptions):
    """Options of `adam`. Source: Kingma & Ba, arXiv 1412.6980, with bias correction.

    Attributes:
        beta1: factor of the first moment, in [0, 1).
        beta2: factor of the second moment, in [0, 1).
        eps: added to the root of the second moment.
    """

    name: Literal["adam"] = "adam"
    lr: PositiveFloat = 0.001
    beta1: Beta = 0.9
    beta2: Beta = 0.999
    eps: PositiveFloat = 1e-8


TABLE: dict[str, type[OptimizerOptions]] = {"adam": AdamOptions, "sgd": SgdOptions}
"""The optimisers by their names in configs."""


def options_for(name: str) -> type[OptimizerOptions]:
    """Return the options class of the optimiser of that name.

    Raises:
        ConfigError: no such optimiser; the message lists the known ones.
    """
    return choose("optimizer", name, TABLE)
