"""Read a config, check it against the options of its components, and write it out resolved."""

import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fedsbc.config import overrides as overriding
from fedsbc.config.components import COMPONENTS, Component, with_fields_of
from fedsbc.config.problems import Origin, explain, show
from fedsbc.config.schema import Config
from fedsbc.config.yaml_text import Tree, dump, parse
from fedsbc.errors import ConfigError
from fedsbc.options import Options


def load(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a config from a YAML file.

    Args:
        path: of the file.
        overrides: `key.path=value`, as after `--set`; see `fedsbc.config.overrides`.

    Raises:
        ConfigError: the file cannot be read or is not YAML, or a key is unknown, missing, given
            twice, of the wrong type or out of range; the message is one line with the place.
    """
    tree = parse(_read(path), str(path))
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: given {show(tree)}, expected a mapping of keys to values")
    tree, overridden = overriding.apply(tree, overrides)
    return build(tree, Origin(str(path), overridden))


def from_json(text: str) -> Config:
    """Return the config that `to_json` wrote.

    Raises:
        ConfigError: as for `load`.
    """
    where = "config given as JSON"
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not JSON: {error}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{where}: given {show(tree)}, expected an object")
    return build(tree, Origin(where))


def to_json(config: Config) -> str:
    """Return the resolved config as canonical JSON: sorted keys, no spaces, one line."""
    tree = config.model_dump(mode="json")
    return json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_yaml(config: Config) -> str:
    """Return the resolved config as YAML, keys in the order of the schema."""
    return dump(config.model_dump(mode="json"))


def build(tree: Tree, origin: Origin) -> Config:
    """Return the config that a tree of plain data stands for.

    Raises:
        ConfigError: as for `load`.
    """
    tree = deepcopy(tree)
    for component in COMPONENTS:
        *above, key = component.path
        section = overriding.subtree(tree, tuple(above))
        if isinstance(section, dict) and (key in section or component.default is not None):
            given = section.get(key, component.default)
            section[key] = _build_component(component, given, origin)
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        raise explain(error, Config, (), tree, origin) from None


def _build_component(component: Component, given: Any, origin: Origin) -> Options:
    """Return the options of one component, read by the class that its chooser names."""
    chooser = (*component.path, component.chooser)
    if not isinstance(given, dict):
        expected = f"a mapping with the key `{component.chooser}`"
        raise origin.error(component.path, f"given {show(given)}, expected {expected}")
    given = {**(component.default or {}), **given}
    choice = given.get(component.chooser)
    if not isinstance(choice, str):
        said = f"given {show(choice)}" if component.chooser in given else "missing key"
        raise origin.error(chooser, f"{said}, expected text")
    try:
        options = component.options_for(choice)
    except ConfigError as error:
        raise origin.error(chooser, str(error)) from None
    return _validate(component, options, given, origin)


def _validate(component: Component, options: type[Options], given: Tree, origin: Origin) -> Options:
    """Read a sub-tree; JSON's rules let a list of the tree be a tuple of the options."""
    inner = {key: value for key, value in given.items() if isinstance(value, Options)}
    plain = {key: value for key, value in given.items() if key not in inner}
    reader = with_fields_of(options, component.holder) if component.holder else options
    origin.components[component.path] = reader
    try:
        read = options.model_validate_json(json.dumps(plain))
        return reader.model_validate({**dict(read), **inner}) if component.holder else read
    except ValidationError as error:
        raise explain(error, reader, component.path, plain, origin) from None


def _read(path: str | Path) -> str:
    """Return the text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
