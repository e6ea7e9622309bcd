"""What a run reports: one record a round, one summary at the end.

Bits are payload bits and sums over all clients; the direction is in the name. Ratios say how many
times fewer bits were sent than by the dense method of the name. Nothing here is per client: that
is in the ledger, which has one row per message.
"""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Self

from fedsbc.errors import RunError


class _Record:
    """Conversion to and from a JSON object, shared by the records of this file."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict that JSON can hold."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]  # subclasses are dataclasses

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build a record from a dict; keys of newer versions are ignored.

        Raises:
            RunError: a field without a default is missing.
        """
        known = fields(cls)  # type: ignore[arg-type]  # as above
        missing = [f.name for f in known if f.default is MISSING and f.name not in data]
        if missing:
            names = [f.name for f in known]
            raise RunError(f"{cls.__name__}: expected the fields {names}, missing: {missing}")
        return cls(**{f.name: data[f.name] for f in known if f.name in data})


@dataclass(frozen=True)
class RoundRecord(_Record):
    """One round, as a line of `rounds.jsonl`.

    Attributes:
        round: 1 and up; 0 is the model before the first round.
        accuracy: fraction of the test samples that the server model gets right, in [0, 1];
            None where this round was not evaluated.
        loss: mean loss on the test samples; None where this round was not evaluated.
        train_loss: mean local training loss over the participants; None where there is none.
        up_bits: payload bits of this round from all clients to the server.
        down_bits: payload bits of this round from the server to all clients.
        simulated_s: seconds that this round takes on the configured network; 0.0 without one.
        wall_s: seconds that this round took on this machine.
        participants: number of clients whose update was used.
        failures: number of clients asked whose update was not used.
        num_steps: local steps of all participants together.
        forgotten: sum of the absolute values that clients dropped from their residuals on purpose
            (`residual.absent`), as far as their replies came in time.
        client_accuracy: fraction of their own samples that the clients of the round find right,
            over all samples; None where they were not asked (`evaluate.clients`).
        client_loss: mean loss on those samples; None likewise.
    """

    round: int
    accuracy: float | None
    loss: float | None
    train_loss: float | None
    up_bits: int
    down_bits: int
    simulated_s: float
    wall_s: float
    participants: int
    failures: int
    num_steps: int = 0
    forgotten: float = 0.0
    client_accuracy: float | None = None
    client_loss: float | None = None


@dataclass(frozen=True)
class Summary(_Record):
    """The outcome of a run, as `summary.json`.

    Attributes:
        name: the run's name.
        rounds: number of rounds that were run.
        final_accuracy: accuracy of the last evaluated round, in [0, 1]; None without one.
        best_accuracy: highest accuracy of an evaluated round; None without one.
        up_bits: payload bits of the run from all clients to the server.
        down_bits: payload bits of the run from the server to all clients.
        up_ratio_dsgd: upstream bits of dense float32 at every local step, over `up_bits`.
        up_ratio_fedavg: upstream bits of dense float32 at every exchange, over `up_bits`.
        down_ratio_fedavg: downstream bits of a dense float32 model to every participant of
            every round, over `down_bits`.
        simulated_s: sum over rounds of the simulated seconds; 0.0 without a network.
        wall_s: seconds that the run took on this machine.
        num_params: number of model parameters, d.
        model_sha256: sha256 of the little-endian float32 parameters, then the buffers.
        failures: sum over rounds of the clients asked whose update was not used.
        completed: whether every round of the config was run.

    Ratios are None where nothing was sent.
    """

    name: str
    rounds: int
    final_accuracy: float | None
    best_accuracy: float | None
    up_bits: int
    down_bits: int
    up_ratio_dsgd: float | None
    up_ratio_fedavg: float | None
    down_ratio_fedavg: float | None
    simulated_s: float
    wall_s: float
    num_params: int
    model_sha256: str
    failures: int
    completed: bool
