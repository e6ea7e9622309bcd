"""What a round came to, client by client."""

import math
from dataclasses import dataclass, field

from fedsbc.message import TrainReply, TrainRequest

from .courier import Parcel
from .members import Member


@dataclass
class Asked:
    """One client of the cohort: what it was sent, and what came of it.

    Attributes:
        parcel: the request.
        reply: the fields of its reply, if its update counts. The update itself is not kept.
        dropped_out: it was never heard of (`availability.dropout`).
    """

    parcel: Parcel[TrainRequest]
    reply: TrainReply | None = None
    dropped_out: bool = False

    @property
    def member(self) -> Member:
        """The client."""
        return self.parcel.member


@dataclass
class RoundResult:
    """What a round came to.

    Attributes:
        round: its number.
        asked: the cohort by node id.
        failures: clients asked whose update was not used.
        is_aborted: whether the model stayed as it was.
        seconds: simulated seconds of the clients that answered; those of one that did not answer
            are infinite where there is a deadline to wait for.
    """

    round: int
    asked: dict[int, Asked] = field(default_factory=dict)
    failures: int = 0
    is_aborted: bool = False
    seconds: dict[int, float] = field(default_factory=dict)

    @property
    def used(self) -> list[TrainReply]:
        """The replies whose update was applied, by ascending client id."""
        return [] if self.is_aborted else [a.reply for a in self.asked.values() if a.reply]

    @property
    def train_loss(self) -> float | None:
        """Mean local training loss over those clients; None without a finite one."""
        finite = [reply.train_loss for reply in self.used if math.isfinite(reply.train_loss)]
        return sum(finite) / len(finite) if finite else None

    @property
    def forgotten(self) -> float:
        """What the clients that answered dropped from their residuals on purpose."""
        return sum(a.reply.forgotten for a in self.asked.values() if a.reply)
