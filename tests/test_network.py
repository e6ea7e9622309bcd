"""Simulated time: closed forms worked out by hand, and links that depend on the seed alone."""

import math
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from fedsbc.errors import ConfigError, DataError
from fedsbc.network import (
    PROFILES,
    Link,
    Network,
    build,
    client_seconds,
    late_clients,
    options_for,
    round_seconds,
)

OWN = {"profile": "own", "uplink_bit_s": 1e6, "downlink_bit_s": 4e6, "latency_s": 0.05}
HEADER = "client_id,uplink_bit_s,downlink_bit_s,latency_s\n"


def network(given: dict[str, object], clients: int = 5, seed: int = 0) -> Network:
    return build(options_for(str(given["profile"])).model_validate(given), seed, clients)


@pytest.mark.parametrize(
    ("link", "work", "expected_s"),
    [
        # Latency alone, there and back: 0.05 + 0.05.
        (Link(1e6, 4e6, 0.05), (0, 0, 0, 431_080), 0.1),
        # A dense LeNet on 3G, 13,794,560 bits each way: 8.6216 down, 17.961667 up, 2 x 0.075.
        (Link(768e3, 1.6e6, 0.075), (13_794_560, 13_794_560, 10, 431_080), 26.733266666666667),
        # SBC up, 34,560 bits: 0.045 up; 8.6216 down; 10 steps of 0.02; 2 x 0.075.
        (Link(768e3, 1.6e6, 0.075, 0.02), (34_560, 13_794_560, 10, 431_080), 9.0166),
        # Coding alone: 1,000,000 entries x 250 ns.
        (Link(1e6, 1e6, 0.0, 0.0, 250.0), (0, 0, 0, 1_000_000), 0.25),
        # LoRa: 5,470 bits up at 54.7 bit/s, 547 down at 547 bit/s, 2 x 1 s, 4 steps of 3 s.
        (Link(54.7, 547.0, 1.0, 3.0), (5_470, 547, 4, 100), 115.0),
        # Nothing is simulated.
        (Link(math.inf, math.inf, 0.0), (13_794_560, 13_794_560, 10, 431_080), 0.0),
    ],
)
def test_pitfall_34_seconds_equal_the_closed_form(
    link: Link, work: tuple[int, int, int, int], expected_s: float
) -> None:
    assert client_seconds(link, *work) == pytest.approx(expected_s, rel=1e-12)


def test_a_round_takes_as_long_as_its_slowest_participant() -> None:
    seconds = {7: 2.0, 1: 9.5, 4: 3.0}
    assert round_seconds(seconds) == 9.5
    assert round_seconds({}) == 0.0
    assert late_clients(seconds, None) == []


def test_a_deadline_ends_the_round_and_names_the_stragglers() -> None:
    seconds = {7: 4.0, 1: 9.5, 4: 3.0, 2: 3.5}
    assert round_seconds(seconds, 3.5) == 3.5
    assert late_clients(seconds, 3.5) == [1, 7]  # who is exactly in time is in time
    assert round_seconds(seconds, 20.0) == 9.5
    assert late_clients(seconds, 20.0) == []


def test_no_network_takes_no_time_and_has_no_other_options() -> None:
    links = network({"profile": "none"}).links
    assert [client_seconds(link, 1e9, 1e9, 100, 10**6) for link in links] == [0.0] * 5
    with pytest.raises(ValidationError, match="deadline_s"):
        network({"profile": "none", "deadline_s": 3.0})


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_gives_its_figures_and_names_its_source(name: str) -> None:
    profile = PROFILES[name]
    given = {"profile": name, "seconds_per_step": 0.5, "coding_ns_per_entry": 20.0}
    (link,) = network(given, clients=1).links
    expected = (profile.uplink_bit_s, profile.downlink_bit_s, profile.latency_s, 0.5, 20.0)
    assert link == Link(*expected)
    assert 0 < profile.uplink_bit_s <= profile.downlink_bit_s
    assert len(profile.source) > 20


def test_profiles_are_ordered_by_what_a_round_takes() -> None:
    bits = 13_794_560
    needed_s = {
        name: client_seconds(network({"profile": name}).links[0], bits, bits, 0, 0)
        for name in PROFILES
    }
    assert sorted(needed_s, key=needed_s.__getitem__) == ["lan", "5g", "wifi", "4g", "3g", "lora"]


def test_a_figure_of_a_profile_can_be_replaced() -> None:
    (link,) = network({"profile": "4g", "uplink_bit_s": 1e5, "latency_s": 0.0}, clients=1).links
    assert link == Link(1e5, PROFILES["4g"].downlink_bit_s, 0.0)


def test_an_unknown_profile_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'wfi'.*did you mean 'wifi'.*3g, 4g, 5g, lan, lora"):
        options_for("wfi")


@pytest.mark.parametrize(
    "given",
    [
        {"profile": "own", "uplink_bit_s": 1e6},
        {**OWN, "uplink_bit_s": 0.0},
        {**OWN, "latency_s": -1.0},
        {**OWN, "downlink_bit_s": math.inf},
        {**OWN, "deadline_s": 0.0},
        {**OWN, "spread": {"kind": "uniform", "link": 1.0}},
        {**OWN, "trace": "links.csv"},
        {"profile": "trace"},
    ],
)
def test_options_out_of_range_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        network(given)


def test_links_depend_on_the_seed_and_the_client_alone() -> None:
    given = {**OWN, "seconds_per_step": 0.1, "spread": {"link": 0.5, "step": 0.3}}
    few, many = network(given, clients=3), network(given, clients=50)
    assert many.links[:3] == few.links
    assert len(set(many.links)) == 50
    assert network(given, clients=3, seed=1).links != few.links


def test_lognormal_spread_has_the_median_and_the_width_asked_for() -> None:
    given = {**OWN, "seconds_per_step": 0.1, "spread": {"link": 0.5, "step": 0.3}}
    links = network(given, clients=4000).links
    rates = np.log([link.uplink_bit_s / 1e6 for link in links])
    steps = np.log([link.seconds_per_step / 0.1 for link in links])
    # Five standard errors: of a mean sigma / sqrt(n), of a width sigma / sqrt(2 n).
    for draws, sigma in ((rates, 0.5), (steps, 0.3)):
        assert abs(draws.mean()) < 5 * sigma / math.sqrt(4000)
        assert abs(draws.std() - sigma) < 5 * sigma / math.sqrt(8000)
    assert abs(np.corrcoef(rates, steps)[0, 1]) < 5 / math.sqrt(4000)
    assert all(link.downlink_bit_s == pytest.approx(4 * link.uplink_bit_s) for link in links)


def test_uniform_spread_stays_within_its_bounds_and_fills_them() -> None:
    given = {**OWN, "spread": {"kind": "uniform", "link": 0.25}}
    rates = [link.uplink_bit_s for link in network(given, clients=2000).links]
    assert 0.75e6 <= min(rates) < 0.76e6
    assert 1.24e6 < max(rates) <= 1.25e6


def test_a_trace_gives_each_client_its_own_link(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text(
        "latency_s,client_id,uplink_bit_s,downlink_bit_s,seconds_per_step\n"
        "0.5,1,100,1e3,2\n0.25,0,200,2e3,4\n\n9,7,1,1,1\n"
    )
    given = {"profile": "trace", "trace": str(path), "coding_ns_per_entry": 3.0, "deadline_s": 8.0}
    traced = network(given, clients=2)
    assert traced.links == (Link(200, 2000, 0.25, 4, 3.0), Link(100, 1000, 0.5, 2, 3.0))
    assert traced.deadline_s == 8.0
    with pytest.raises(DataError, match="no row for client 2"):
        network(given, clients=3)


def test_a_trace_without_ids_is_drawn_from(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text("uplink_bit_s,downlink_bit_s,latency_s\n100,1000,0\n200,2000,0\n")
    given = {"profile": "trace", "trace": str(path), "seconds_per_step": 0.5}
    links = network(given, clients=40).links
    assert set(links) == {Link(100, 1000, 0, 0.5), Link(200, 2000, 0, 0.5)}
    assert network(given, clients=40).links == links


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "links.csv:1: the columns are"),
        ("uplink_bit_s,latency_s\n1,1\n", "links.csv:1: the columns are"),
        (HEADER.replace("latency_s", "latency_ms") + "0,1,1,1\n", "links.csv:1: the columns"),
        (HEADER, "has no row"),
        (HEADER + "0,1,1\n", "links.csv:2: 3 values; expected 4"),
        (HEADER + "0,1,1,0\n1,0,1,0\n", "links.csv:3: `uplink_bit_s` is '0'; .* above 0"),
        (HEADER + "0,1,nan,0\n", "links.csv:2: `downlink_bit_s` is 'nan'"),
        (HEADER + "0,1,fast,0\n", "links.csv:2: `downlink_bit_s` is 'fast'"),
        (HEADER + "0,1,1,-1\n", "links.csv:2: `latency_s` is '-1'; expected a number 0 or above"),
        (HEADER + "0.5,1,1,0\n", "links.csv:2: `client_id` is 0.5; expected a whole number"),
        (HEADER + "0,1,1,0\n0,2,2,0\n", "client 0 has more than one row"),
    ],
)
def test_a_trace_that_cannot_be_used_says_where(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "links.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        network({"profile": "trace", "trace": str(path)}, clients=1)


def test_a_missing_trace_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        network({"profile": "trace", "trace": str(tmp_path / "none.csv")})
