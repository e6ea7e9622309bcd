"""Local training: optimisers, schedules, batches and the trainer.

Options can be had without torch; whatever trains is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

from fedsbc.training.optimizer_options import OptimizerOptions
from fedsbc.training.optimizer_options import options_for as options_for_optimizer
from fedsbc.training.schedules import ScheduleOptions
from fedsbc.training.schedules import options_for as options_for_schedule

if TYPE_CHECKING:
    from fedsbc.training.optimizers import mask_momentum
    from fedsbc.training.trainer import Trainer, TrainResult

__all__ = [
    "OptimizerOptions",
    "ScheduleOptions",
    "TrainResult",
    "Trainer",
    "mask_momentum",
    "options_for_optimizer",
    "options_for_schedule",
]

_LATE = {"Trainer": "trainer", "TrainResult": "trainer", "mask_momentum": "optimizers"}


def __getattr__(name: str) -> Any:
    """Load what needs torch when it is first asked for."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
