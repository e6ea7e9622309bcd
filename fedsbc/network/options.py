"""What a config says of links and devices; each kind of network has its own keys."""

import math
from typing import Literal, Self

import numpy as np
from pydantic import model_validator

from fedsbc.choices import choose
from fedsbc.network.profiles import PROFILES
from fedsbc.options import NonNegativeFloat, Options, PositiveFloat


class SpreadOptions(Options):
    """How much clients differ; drawn once per client from the run's seed.

    Attributes:
        kind: `lognormal`: a factor exp(spread x standard normal), whose median is 1;
            `uniform`: a factor between 1 - spread and 1 + spread.
        link: spread of the bit rates; one factor for both directions of a client.
        step: spread of the seconds per step.
    """

    kind: Literal["lognormal", "uniform"] = "lognormal"
    link: NonNegativeFloat = 0.0
    step: NonNegativeFloat = 0.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == "uniform" and max(self.link, self.step) >= 1:
            raise ValueError("a uniform spread must be below 1, or a client may have no speed")
        return self

    def factors(self, draws: np.random.Generator) -> tuple[float, float]:
        """Return one client's factors of the bit rates and of the seconds per step."""
        if self.kind == "uniform":
            link, step = draws.uniform(-1.0, 1.0, size=2)
            return 1 + self.link * float(link), 1 + self.step * float(step)
        link, step = draws.standard_normal(2)
        return math.exp(self.link * float(link)), math.exp(self.step * float(step))


class NetworkOptions(Options):
    """The base of all of them.

    Attributes:
        profile: the kind of network; subclasses narrow it to a `Literal`.
    """

    profile: str


class NoNetwork(NetworkOptions):
    """Time is not simulated: every round takes 0.0 s."""

    profile: Literal["none"] = "none"


class SimulatedNetwork(NetworkOptions):
    """What every simulated network has.

    Attributes:
        seconds_per_step: seconds of one local step; by default steps take no time.
        coding_ns_per_entry: nanoseconds of compressing, encoding and decoding, together, for
            each entry of the model; by default coding takes no time.
        spread: how much clients differ.
        deadline_s: simulated seconds after which a round ends without the clients that are
            still under way; by default it waits for all.
    """

    seconds_per_step: NonNegativeFloat = 0.0
    coding_ns_per_entry: NonNegativeFloat = 0.0
    spread: SpreadOptions = SpreadOptions()
    deadline_s: PositiveFloat | None = None


class NamedNetwork(SimulatedNetwork):
    """One of `PROFILES`.

    Attributes:
        uplink_bit_s: bits a second from a client to the server, in place of the profile's.
        downlink_bit_s: bits a second from the server to a client, in place of the profile's.
        latency_s: seconds one way, in place of the profile's.
    """

    profile: Literal["lan", "wifi", "5g", "4g", "3g", "lora"]
    uplink_bit_s: PositiveFloat | None = None
    downlink_bit_s: PositiveFloat | None = None
    latency_s: NonNegativeFloat | None = None


class OwnNetwork(SimulatedNetwork):
    """A network that the config describes.

    Attributes:
        uplink_bit_s: bits a second from a client to the server.
        downlink_bit_s: bits a second from the server to a client.
        latency_s: seconds one way.
    """

    profile: Literal["own"]
    uplink_bit_s: PositiveFloat
    downlink_bit_s: PositiveFloat
    latency_s: NonNegativeFloat = 0.0


class TraceNetwork(SimulatedNetwork):
    """Links that were measured, from a file.

    Attributes:
        trace: the CSV file; `fedsbc.network.trace` says what is in it.
    """

    profile: Literal["trace"]
    trace: str


TABLE: dict[str, type[NetworkOptions]] = {
    "none": NoNetwork,
    **dict.fromkeys(PROFILES, NamedNetwork),
    "own": OwnNetwork,
    "trace": TraceNetwork,
}
"""Profile -> its options."""


def options_for(profile: str) -> type[NetworkOptions]:
    """Return the options class of a profile.

    Raises:
        ConfigError: there is no such profile; the message lists the known ones.
    """
    return choose("network profile", profile, TABLE)
