"""The compressors: one scheme a file, one table of names.

A scheme of another package joins by an entry point of the group `fedsbc.compressors` whose name
is the scheme's name and whose value is its class; names of the table cannot be taken over.
"""

from importlib.metadata import EntryPoint, entry_points

from fedsbc.choices import choose
from fedsbc.compressors.base import (
    Compressor,
    CompressorOptions,
    CorrectingCompressor,
    Scope,
    SparseOptions,
    State,
    SummingCompressor,
    as_vector,
)
from fedsbc.compressors.dgc import Dgc
from fedsbc.compressors.ef_signsgd import EfSignSgd
from fedsbc.compressors.gaussiank import GaussianK
from fedsbc.compressors.gradient_dropping import GradientDropping
from fedsbc.compressors.none import NoCompression
from fedsbc.compressors.onebit import OneBit
from fedsbc.compressors.qsgd import Qsgd
from fedsbc.compressors.randomk import RandomK
from fedsbc.compressors.sbc import Sbc
from fedsbc.compressors.scopes import check_vector
from fedsbc.compressors.signsgd import SignSgd
from fedsbc.compressors.stc import Stc
from fedsbc.compressors.terngrad import TernGrad
from fedsbc.compressors.threshold_search import ThresholdSearch
from fedsbc.compressors.topk import TopK
from fedsbc.compressors.trimmed_topk import TrimmedTopK
from fedsbc.errors import ConfigError

__all__ = [
    "ENTRY_POINT_GROUP",
    "TABLE",
    "Compressor",
    "CompressorOptions",
    "CorrectingCompressor",
    "Scope",
    "SparseOptions",
    "State",
    "SummingCompressor",
    "as_vector",
    "check_vector",
    "make",
    "names",
    "options_for",
]

TABLE: dict[str, type[Compressor]] = {
    "dgc": Dgc,
    "ef-signsgd": EfSignSgd,
    "gaussiank": GaussianK,
    "gradient-dropping": GradientDropping,
    "none": NoCompression,
    "onebit": OneBit,
    "qsgd": Qsgd,
    "randomk": RandomK,
    "sbc": Sbc,
    "signsgd": SignSgd,
    "stc": Stc,
    "terngrad": TernGrad,
    "threshold-search": ThresholdSearch,
    "topk": TopK,
    "trimmed-topk": TrimmedTopK,
}
"""Every scheme of this package by its name in configs."""

ENTRY_POINT_GROUP = "fedsbc.compressors"
"""The entry-point group in which other packages offer schemes."""


def names() -> list[str]:
    """Return the names of all schemes, those of installed packages included, sorted."""
    return sorted({*TABLE, *_installed()})


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


def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _find(name: str) -> type[Compressor]:
    """Return a scheme of the table, or load the one that an installed package offers."""
    if name in TABLE:
        return TABLE[name]
    installed = _installed()
    choose("compressor", name, {**TABLE, **installed})
    try:
        found: type[Compressor] = installed[name].load()
    except (ImportError, AttributeError) as error:
        where = installed[name].value
        raise ConfigError(f"compressor {name!r} ({where}) fails to load: {error}") from error
    return found
