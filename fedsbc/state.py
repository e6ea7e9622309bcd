"""What a client keeps between two rounds, and the one interface of its homes.

A home stores the state of one client of one run. Engines choose it: files that are mapped into
memory (simulation on actors, devices), or Flower's `context.state`. All pass one contract test.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedsbc.arrays import Vector


@dataclass
class ClientState:
    """The state of one client after it trained in `round`.

    Attributes:
        run_id: the run that the state belongs to; state of another run is never used.
        round: the round in which it was written, 1 and up.
        base_version: version of the server model that the client's weights equal, or -1.
        settled_round: the last round whose verdict was applied, 0 at first.
        arrays: named arrays: `residual` (float32, (d,)), `pending` (uint8, the payload that was
            sent last), `base` (float32, (d,), where the home has no shared weights), and those
            of the compressor (`compressor.*`), the optimiser (`optimizer.*`) and local buffers.
    """

    run_id: str
    round: int
    base_version: int = -1
    settled_round: int = 0
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


class StateHome(Protocol):
    """Where the state of one client of one run lives."""

    def load(self, before_round: int) -> ClientState | None:
        """Return the newest state written before that round, or None.

        A repeated request of the same round therefore starts from the same state again.
        """

    def save(self, state: ClientState) -> None:
        """Store the state; it survives the death of this process when the call returns."""

    def base_weights(self, version: int) -> tuple[Vector, NDArray[np.float32]] | None:
        """Return the server's (weights, buffers) of that version where the engine shares them."""
