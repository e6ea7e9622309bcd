"""From a Flower run config to an experiment: what both sides build once per process.

`strategies` and `clients` get the same run config and must train the same thing. The config
travels as one JSON text (`experiment`), or as the path of a YAML file with overrides; its hash
goes into the hello, so that two sides that differ say so before the first round.
"""

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import fedsbc
from fedsbc import compressors, config
from fedsbc.compressors import Compressor
from fedsbc.config import Config
from fedsbc.errors import ConfigError

CONFIG_KEYS = ("experiment", "config", "set")
"""The keys of a run config that say what is run."""


def config_of(run_config: Mapping[str, object]) -> Config:
    """Return the config that a Flower run config names.

    Args:
        run_config: `experiment` (a resolved config as JSON), or `config` (path of a YAML file:
            absolute, in the working directory, or in the app) with `set` ("a.b=c d=e").

    Raises:
        ConfigError: it names none, or one that cannot be used.
    """
    text = str(run_config.get("experiment") or "")
    if text:
        return _parsed(text)
    path = str(run_config.get("config") or "")
    if not path:
        raise ConfigError("run config: neither `experiment` nor `config` is given")
    return _loaded(path, str(run_config.get("set") or ""))


@functools.lru_cache(maxsize=4)
def _parsed(text: str) -> Config:
    return config.from_json(text)


@functools.lru_cache(maxsize=4)
def _loaded(path: str, overrides: str) -> Config:
    return config.load(_find(path), overrides.split())


def _find(path: str) -> Path:
    """Return where a config lies: as given, or in the app that this package is part of."""
    in_app = Path(fedsbc.__file__).parent.parent / path
    return in_app if not Path(path).exists() and in_app.exists() else Path(path)


SERVER_ONLY = (
    "availability",
    "checkpoint",
    "debug",
    "engine",
    "name",
    "network",
    "record",
    "rounds",
    "transport",
)
"""Keys of a config in which a client may differ from the server."""


def experiment_hash(experiment: Config) -> str:
    """Return 16 hex digits over everything that both sides must agree on.

    Where and how fast a run is computed (`engine`, `transport`), what is kept of it, how long it
    lasts and who is there change no bytes of a client's round, and are left out.
    """
    tree = experiment.model_dump(mode="json")
    for key in SERVER_ONLY:
        tree.pop(key)
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]


def upstream_compressor(experiment: Config) -> Compressor:
    """Return the scheme from clients to the server."""
    return compressors.make(experiment.upstream)


def downstream_compressor(experiment: Config) -> Compressor:
    """Return the scheme from the server to clients."""
    return compressors.make(experiment.downstream)
