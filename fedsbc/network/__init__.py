"""Time: what a round would take on the links and devices of its clients.

network = build(config.network, config.seed, config.clients.count)
seconds = {i: client_seconds(network.links[i], up, down, steps, d) for i in cohort}
late = late_clients(seconds, network.deadline_s)
simulated_s = round_seconds(seconds, network.deadline_s)
"""

from fedsbc.network.links import INSTANT, Link, Network, build
from fedsbc.network.options import (
    NamedNetwork,
    NetworkOptions,
    NoNetwork,
    OwnNetwork,
    SimulatedNetwork,
    SpreadOptions,
    TraceNetwork,
    options_for,
)
from fedsbc.network.profiles import PROFILES, Profile
from fedsbc.network.seconds import client_seconds, late_clients, round_seconds
from fedsbc.network.trace import TraceRow, read_trace

__all__ = [
    "INSTANT",
    "PROFILES",
    "Link",
    "NamedNetwork",
    "Network",
    "NetworkOptions",
    "NoNetwork",
    "OwnNetwork",
    "Profile",
    "SimulatedNetwork",
    "SpreadOptions",
    "TraceNetwork",
    "TraceRow",
    "build",
    "client_seconds",
    "late_clients",
    "options_for",
    "read_trace",
    "round_seconds",
]
