"""Numbers for people."""

import pytest

from fedsbc.units import human_bits, human_ratio, human_seconds, human_share


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0, "0 bit"),
        (999, "999 bit"),
        (999.7, "1.00 kbit"),
        (1000, "1.00 kbit"),
        (13_794_560, "13.8 Mbit"),
        (999_950_000, "1.00 Gbit"),
        (1e15, "1.00 Pbit"),
        (5e22, "50,000 Ebit"),
    ],
)
def test_bits(bits: float, words: str) -> None:
    assert human_bits(bits) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (3599.6, "1 h 00 min"),
        (3725, "1 h 02 min"),
        (86_399, "1 d 00 h"),
        (200_000, "2 d 08 h"),
    ],
)
def test_seconds(seconds: float, words: str) -> None:
    assert human_seconds(seconds) == words


def test_ratios_and_shares() -> None:
    assert [human_ratio(r) for r in (None, 0.5, 9.996, 99.97, 39_468.2)] == [
        "–",
        "×0.50",
        "×10.0",
        "×100",
        "×39,468",
    ]
    assert [human_share(s) for s in (None, 1, 0.95125)] == ["–", "100.00%", "95.12%"]
