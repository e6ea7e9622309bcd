"""Typical networks, each with the source of its figures.

They say what a kind of network is like, not what a given place will see: measure your own links
and use `profile: own` or `profile: trace` where it matters.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """A kind of network.

    Attributes:
        uplink_bit_s: bits a second from a client to the server.
        downlink_bit_s: bits a second from the server to a client.
        latency_s: seconds one way.
        source: where each figure comes from, and which are assumptions.
    """

    uplink_bit_s: float
    downlink_bit_s: float
    latency_s: float
    source: str


PROFILES: dict[str, Profile] = {
    "lan": Profile(
        1e9,
        1e9,
        0.0005,
        "Gigabit Ethernet (IEEE 802.3ab), its nominal rate; latency: an assumption",
    ),
    "wifi": Profile(
        15e6,
        30e6,
        0.001,
        "Firefox developer tools, network throttling, 'Wi-Fi': 30 Mbit/s down, 15 up, round "
        "trip 2 ms",
    ),
    "5g": Profile(
        21.08e6,
        166.13e6,
        0.016,
        "Ookla, The State of 5G Worldwide in 2021: global medians of Q3 2021; latency: half of "
        "the 32 ms that Ookla gave for US carriers in Q1 2021 (RCR Wireless, 16 April 2021)",
    ),
    "4g": Profile(
        6.3e6,
        21.3e6,
        0.0275,
        "Opensignal, State of Mobile: USA, May 2019: average download of all users, average "
        "upload on 4G; latency: half of 55 ms, the middle of its 44.1 to 66.4 ms",
    ),
    "3g": Profile(
        768e3,
        1.6e6,
        0.075,
        "sitespeed.io throttle, profile '3g': 1600 kbit/s down, 768 up, round trip 150 ms",
    ),
    "lora": Profile(
        54.7,
        547.0,
        1.0,
        "LoRaWAN Regional Parameters, EU868, data rate 5 (SF7, 125 kHz): 5470 bit/s, which a "
        "device may use 1 % of the time and a gateway 10 % (ETSI EN 300 220 sub-bands); "
        "latency: the default delay of the first receive window. Assumptions: the gateway's "
        "share is not divided among the clients, frame headers are not counted",
    ),
}
"""Typical clients of each kind of network; see each profile's source."""
