"""The links of a run's clients: the same for the same config and seed."""

import math
from dataclasses import dataclass

import numpy as np

from fedsbc.errors import DataError
from fedsbc.network.options import (
    NamedNetwork,
    NetworkOptions,
    OwnNetwork,
    SimulatedNetwork,
    TraceNetwork,
)
from fedsbc.network.profiles import PROFILES
from fedsbc.network.trace import TraceRow, read_trace
from fedsbc.seeds import Stream, generator


@dataclass(frozen=True)
class Link:
    """How fast one client is.

    Attributes:
        uplink_bit_s: bits a second from the client to the server.
        downlink_bit_s: bits a second from the server to the client.
        latency_s: seconds that a message is under way, one way.
        seconds_per_step: seconds of one local SGD step.
        coding_ns_per_entry: nanoseconds of compressing, encoding and decoding, together, for
            each entry of the model.
    """

    uplink_bit_s: float
    downlink_bit_s: float
    latency_s: float
    seconds_per_step: float = 0.0
    coding_ns_per_entry: float = 0.0


INSTANT = Link(math.inf, math.inf, 0.0)
"""The link of `profile: none`: everything takes 0.0 s."""


@dataclass(frozen=True)
class Network:
    """The links of a run.

    Attributes:
        links: one per client, by client id.
        deadline_s: simulated seconds after which a round ends; None if it waits for all.
    """

    links: tuple[Link, ...]
    deadline_s: float | None = None


def build(options: NetworkOptions, seed: int, num_clients: int) -> Network:
    """Return the links of clients 0 to `num_clients` - 1.

    A client's link depends on the options, the seed and its id alone: a run with more clients
    has the same first ones.

    Raises:
        DataError: the trace file cannot be used, or lacks a client.
    """
    if not isinstance(options, SimulatedNetwork):
        return Network((INSTANT,) * num_clients)
    rows = read_trace(options.trace) if isinstance(options, TraceNetwork) else []
    links = tuple(_link(options, seed, client_id, rows) for client_id in range(num_clients))
    return Network(links, options.deadline_s)


def _link(options: SimulatedNetwork, seed: int, client_id: int, rows: list[TraceRow]) -> Link:
    """Return one client's link, drawn by (seed, `Stream.NETWORK`, client id)."""
    draws = generator(seed, Stream.NETWORK, client_id)
    rate_factor, step_factor = options.spread.factors(draws)
    step_s = options.seconds_per_step
    if isinstance(options, TraceNetwork):
        row = _row_of(options.trace, rows, client_id, draws)
        up_bit_s, down_bit_s, latency_s = row.uplink_bit_s, row.downlink_bit_s, row.latency_s
        step_s = step_s if row.seconds_per_step is None else row.seconds_per_step
    else:
        up_bit_s, down_bit_s, latency_s = _figures(options)
    return Link(
        uplink_bit_s=up_bit_s * rate_factor,
        downlink_bit_s=down_bit_s * rate_factor,
        latency_s=latency_s,
        seconds_per_step=step_s * step_factor,
        coding_ns_per_entry=options.coding_ns_per_entry,
    )


def _figures(options: SimulatedNetwork) -> tuple[float, float, float]:
    """Return uplink and downlink in bit/s and the latency in seconds, before the spread."""
    if isinstance(options, OwnNetwork):
        return options.uplink_bit_s, options.downlink_bit_s, options.latency_s
    assert isinstance(options, NamedNetwork), f"no figures for {options.profile}"
    profile = PROFILES[options.profile]
    return (
        profile.uplink_bit_s if options.uplink_bit_s is None else options.uplink_bit_s,
        profile.downlink_bit_s if options.downlink_bit_s is None else options.downlink_bit_s,
        profile.latency_s if options.latency_s is None else options.latency_s,
    )


def _row_of(
    path: str, rows: list[TraceRow], client_id: int, draws: np.random.Generator
) -> TraceRow:
    """Return a client's own row, or a drawn one where the file does not say whose they are."""
    if rows[0].client_id is None:
        return rows[int(draws.integers(len(rows)))]
    own = next((row for row in rows if row.client_id == client_id), None)
    if own is None:
        raise DataError(f"{path}: there is no row for client {client_id}; expected one for each")
    return own
