"""How long a client's part of a round takes, and how long the round. Closed forms.

One client's part, from the server's message to its reply:

    latency + down bits / downlink + steps x seconds per step
            + entries x coding time per entry + up bits / uplink + latency

A round takes as long as its slowest participant, or until the deadline. The latency is one way:
half of a round trip. Bits are payload bits; what a network adds around them (frames,
retransmissions) is not simulated. The clock of the machine is never looked at.
"""

from collections.abc import Mapping

from fedsbc.network.links import Link


def client_seconds(
    link: Link, up_bits: float, down_bits: float, num_steps: float, num_entries: int
) -> float:
    """Return the seconds of one client's part of a round.

    Args:
        link: the client's.
        up_bits: payload bits of its reply.
        down_bits: payload bits of the message to it.
        num_steps: local steps that it takes.
        num_entries: entries of the model, d.
    """
    return (
        link.latency_s
        + down_bits / link.downlink_bit_s
        + num_steps * link.seconds_per_step
        + num_entries * link.coding_ns_per_entry * 1e-9
        + up_bits / link.uplink_bit_s
        + link.latency_s
    )


def late_clients(seconds: Mapping[int, float], deadline_s: float | None) -> list[int]:
    """Return the clients that are still under way at the deadline, by ascending id.

    Args:
        seconds: client id -> seconds of its part, as of `client_seconds`.
        deadline_s: simulated seconds; None for no deadline.
    """
    if deadline_s is None:
        return []
    return sorted(client_id for client_id, needed_s in seconds.items() if needed_s > deadline_s)


def round_seconds(seconds: Mapping[int, float], deadline_s: float | None = None) -> float:
    """Return the seconds of a round: those of the slowest participant, or the deadline.

    Args:
        seconds: client id -> seconds of its part; the clients that were asked and answered.
        deadline_s: simulated seconds; None for no deadline.

    Returns:
        0.0 for no participant.
    """
    slowest_s = max(seconds.values(), default=0.0)
    return slowest_s if deadline_s is None else min(slowest_s, deadline_s)
