"""A client's residual at the start of a round: after the verdict, and after an absence."""

from dataclasses import dataclass

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.config.schema import ResidualConfig
from fedsbc.layout import Layout
from fedsbc.message import SettlingRequest
from fedsbc.payload import decode
from fedsbc.state import ClientState


@dataclass(frozen=True)
class Residual:
    """What a client goes on with.

    Attributes:
        kept: float32, shape (d,), read only; None where there is none.
        forgotten: what it dropped on purpose, float32, shape (d,); None where it dropped nothing.
    """

    kept: Vector | None
    forgotten: Vector | None = None

    @property
    def forgotten_mass(self) -> float:
        """Sum of the absolute values that were dropped."""
        if self.forgotten is None:
            return 0.0
        return float(np.abs(self.forgotten).sum(dtype=np.float64))


def settled(request: SettlingRequest, state: ClientState | None, layout: Layout) -> Vector | None:
    """Return the residual after the verdict on the last update; None without error feedback.

    An update that was not used goes back into the residual, so that nothing is lost; one that
    was used or refused as bad does not.
    """
    if state is None or "residual" not in state.arrays:
        return None
    residual: Vector = state.arrays["residual"]
    if "pending" not in state.arrays or request.verdict_on(state.round) != "unused":
        return residual
    total = layout.zeros()
    total[:] = residual
    decode(state.arrays["pending"].tobytes(), layout).add_to(total)
    return total


def after_absence(residual: Vector | None, missed_rounds: int, rule: ResidualConfig) -> Residual:
    """Return what is left of a residual after rounds in which the client did not train.

    Args:
        residual: float32, shape (d,), after the verdict; read only.
        missed_rounds: rounds since the client last trained.
        rule: `keep` leaves it bit for bit; `decay` multiplies it by factor^missed, rounded once
            to float32; `drop` forgets all of it from `rule.after` missed rounds on.
    """
    if residual is None or missed_rounds == 0 or rule.absent == "keep":
        return Residual(residual)
    if rule.absent == "drop":
        assert rule.after is not None, "the config was checked"
        return Residual(residual) if missed_rounds < rule.after else Residual(None, residual)
    assert rule.factor is not None, "the config was checked"
    kept = residual * np.float32(rule.factor**missed_rounds)
    return Residual(kept, residual - kept)
