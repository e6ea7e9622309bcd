"""What a client keeps between two rounds, and the one interface of its homes.

A home stores the state of one client of one run. Engines choose it: files that are mapped into
memory (simulation on actors, devices), or Flower's `context.state`. All pass one contract test.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from fedsbc.arrays import Vector


@dataclass
class ClientState:
    """The state of one client after it trained in `round`.

    Attributes:
        run_id: the run that the state belongs to; state of another run is never used.
        round: the round in which it was written, 1 and up.
        base_version: version of the server model that the client's weights equal, or -1.
        arrays: named arrays: `residual` (float32, (d,)), `pending` (uint8: the payload that was
            sent in `round`, until its verdict is known), `base` and `base-buffers` (float32, the
            server's weights, where the home shares none), `buffers` (float32, local ones), and
            those of the compressor (`compressor.*`) and the optimiser (`optimizer.*`).
    """

    run_id: str
    round: int
    base_version: int = -1
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


class StateHome(Protocol):
    """Where the state of one client of one run lives."""

    def load(self, before_round: int) -> ClientState | None:
        """Return the newest state written before that round, or None.

        A repeated request of the same round therefore starts from the same state again.
        """

    def save(self, state: ClientState) -> None:
        """Store the state; it survives the death of this process when the call returns."""

    def base_weights(self, version: int) -> tuple[Vector, Vector] | None:
        """Return the server's (weights, buffers) of that version where the engine shares them."""


def newest_slot(rounds: Sequence[int | None], before_round: int) -> int | None:
    """Return which slot holds the newest state written before a round, or None.

    Args:
        rounds: for each slot the round of its state, or None where it holds none of this run.
        before_round: the round that is about to be trained.
    """
    earlier = [(r, slot) for slot, r in enumerate(rounds) if r is not None and r < before_round]
    return max(earlier)[1] if earlier else None


def slot_to_write(rounds: Sequence[int | None], round: int) -> int:
    """Return which of two slots a state of that round goes to: never the one it started from."""
    started_from = newest_slot(rounds, round)
    return 0 if started_from is None else 1 - started_from
