"""Packages that hide ours: the names `clients`, `strategies` and `fedsbc` are easily taken."""

import importlib.util
import sys
from pathlib import Path

from fedsbc.errors import ConfigError

NAMES = ("clients", "strategies", "fedsbc")
OURS = {"clients": "worker.py", "strategies": "members.py", "fedsbc": "seeds.py"}
"""A file that our package of that name has, and a stranger's hardly."""


def check_names() -> None:
    """Look for packages of our names that are not ours, on the path and where we were started.

    Flower's simulation puts its working directory before the app, so that a stranger's `clients`
    there breaks every client, while the server runs well.

    Raises:
        ConfigError: there is one; the line says where.
    """
    for name in NAMES:
        for place in (_on_path(name), Path.cwd() / name):
            if place is not None and place.is_dir() and not (place / OURS[name]).exists():
                raise ConfigError(
                    f"{place}: this folder hides fedsbc's package {name!r}; rename it, or start "
                    "Flower in another folder"
                )


def _on_path(name: str) -> Path | None:
    """Return the folder that an import of the name would take."""
    if name in sys.modules and (file := getattr(sys.modules[name], "__file__", None)):
        return Path(file).parent
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    locations = None if spec is None else spec.submodule_search_locations
    return Path(next(iter(locations))) if locations else None
