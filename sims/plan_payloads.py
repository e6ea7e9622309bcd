"""The payloads that a run will have: expected ones, corrected by what a finished run had."""

from dataclasses import dataclass

from fedsbc.config import Config
from fedsbc.expected import Expected, expected_dense, expected_sum, expected_update
from fedsbc.layout import Layout
from fedsbc.ledger import Ledger


@dataclass(frozen=True)
class Shares:
    """What real payloads were of the expected ones: 1.0 as long as nothing was measured."""

    up: float = 1.0
    down: float = 1.0


@dataclass(frozen=True)
class Payloads:
    """The expected payloads of a run.

    Attributes:
        up: a client's update.
        down: what leads from one version to the next.
        full: a full model.
        buffer_bits: float buffers that travel beside each of them.
        num_entries: d.
    """

    up: Expected
    down: Expected
    full: Expected
    buffer_bits: float
    num_entries: int

    @property
    def up_bits(self) -> float:
        """All payload bits of one reply."""
        return self.up.payload_bits + self.buffer_bits


def payloads(config: Config, layout: Layout, buffers: Layout, shares: Shares) -> Payloads:
    """Return the expected payloads of a run.

    Args:
        config: of the run.
        layout: the model's parameters.
        buffers: its float buffers.
        shares: what measured payloads were of the expected ones.
    """
    up = expected_update(config.upstream, layout)
    if config.downstream.name == "none":
        down = expected_sum(up, layout, config.cohort_size)
    else:
        down = expected_update(config.downstream, layout)
    travels = config.model.buffers == "average" and buffers.size > 0
    return Payloads(
        up=up.times(shares.up),
        down=down.times(shares.down),
        full=expected_dense(layout),
        buffer_bits=expected_dense(buffers).payload_bits if travels else 0.0,
        num_entries=layout.size,
    )


def measured_shares(ledger: Ledger, expected: Payloads) -> Shares:
    """Return what the payloads of a finished run were of the expected ones.

    Down, that is read off the clients that were sent what they missed, not the full model.
    """
    last: dict[int, int] = {}
    ups, downs, versions = [], 0.0, 0
    for row in ledger.rows:
        if row.kind != "train":
            continue
        if row.direction == "up":
            ups.append(row.payload_bits - expected.buffer_bits)
            last[row.client_id] = row.round
            continue
        missed = row.round - last.get(row.client_id, row.round)
        if missed and row.payload_bits < expected.full.payload_bits:
            downs += row.payload_bits - expected.buffer_bits - missed * expected.down.header_bits
            versions += missed
    up = (sum(ups) / len(ups) - expected.up.header_bits) / expected.up.body_bits if ups else 1.0
    down = downs / versions / expected.down.body_bits if versions else 1.0
    return Shares(up, down)
