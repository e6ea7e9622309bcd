"""Numbers for people: bits, ratios, seconds and shares with their units."""

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
MISSING = "–"
"""What stands where there is no number."""


def human_bits(bits: float) -> str:
    """Return bits in three digits and a decimal prefix.

    >>> human_bits(13_794_560)
    '13.8 Mbit'
    """
    value, power = float(bits), 0
    while value >= 999.5 and power < len(_PREFIXES) - 1:
        value, power = value / 1000, power + 1
    number = f"{value:.0f}" if power == 0 else _three_digits(value)
    return f"{number} {_PREFIXES[power]}bit"


def human_ratio(ratio: float | None) -> str:
    """Return how many times fewer, in three digits.

    >>> human_ratio(394.68)
    '×395'
    """
    return MISSING if ratio is None else f"×{_three_digits(ratio)}"


def human_share(share: float | None) -> str:
    """Return a share in [0, 1] in percent with two decimals.

    >>> human_share(0.9512)
    '95.12%'
    """
    return MISSING if share is None else f"{100 * share:.2f}%"


def human_seconds(seconds: float) -> str:
    """Return a duration in its two largest units.

    >>> human_seconds(3725)
    '1 h 02 min'
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24:02} h"


def _three_digits(value: float) -> str:
    """Return a number with three significant digits, or all digits before the point."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
