"""The compressors: one scheme a file, one table of names.

A scheme of another package joins by an entry point of the group `fedsbc.compressors` whose name
is the scheme's name and whose value is its class; names of the table cannot be taken over.
"""

from difflib import get_close_matches
from importlib.metadata import entry_points

from fedsbc.compressors.base import (
    Compressor,
    CompressorOptions,
    Scope,
    SparseOptions,
    State,
    check_finite,
)
from fedsbc.compressors.none import NoCompression
from fedsbc.compressors.sbc import Sbc
from fedsbc.compressors.topk import TopK
from fedsbc.errors import ConfigError

__all__ = [
    "ENTRY_POINT_GROUP",
    "TABLE",
    "Compressor",
    "CompressorOptions",
    "Scope",
    "SparseOptions",
    "State",
    "check_finite",
    "make",
    "names",
    "options_for",
]

TABLE: dict[str, type[Compressor]] = {
    "none": NoCompression,
    "sbc": Sbc,
    "topk": TopK,
}
"""Every scheme of this package by its name in configs."""

ENTRY_POINT_GROUP = "fedsbc.compressors"
"""The entry-point group in which other packages offer schemes."""


def names() -> list[str]:
    """Return the names of all schemes, those of installed packages included, sorted."""
    return sorted(set(TABLE) | {point.name for point in entry_points(group=ENTRY_POINT_GROUP)})


def options_for(name: str) -> type[CompressorOptions]:
    """Return the options class of a scheme, which is its schema in a config.

    Raises:
        ConfigError: there is no such scheme, or its package cannot be loaded.
    """
    return _find(name).Options


def make(options: CompressorOptions) -> Compressor:
    """Make the compressor that the options name.

    Raises:
        ConfigError: there is no such scheme, or its package cannot be loaded.
    """
    return _find(options.name)(options)


def _find(name: str) -> type[Compressor]:
    return TABLE.get(name) or _find_installed(name)


def _find_installed(name: str) -> type[Compressor]:
    """Load the scheme that an installed package offers under this name."""
    points = list(entry_points(group=ENTRY_POINT_GROUP, name=name))
    if not points:
        known = names()
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise ConfigError(f"unknown compressor '{name}'; known: {', '.join(known)}{hint}")
    try:
        found: type[Compressor] = points[0].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"compressor '{name}' ({points[0].value}) fails to load: {error}"
        ) from error
    return found
