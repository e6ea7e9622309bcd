"""From what pydantic found to one line: where, what was given, what is expected, the near miss."""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fedsbc.config.components import KeyPath
from fedsbc.config.describe import all_paths, choices, class_at, describe_field
from fedsbc.config.schema import Config
from fedsbc.errors import ConfigError
from fedsbc.options import Options

_LONGEST_VALUE = 60


@dataclass(frozen=True)
class Origin:
    """Where the keys of a tree come from, and which classes read its components.

    Attributes:
        where: the file, as the user named it.
        overridden: paths that were set on the command line.
        components: options class by path, as far as they are known.
    """

    where: str
    overridden: frozenset[KeyPath] = frozenset()
    components: dict[KeyPath, type[Options]] = field(default_factory=dict)

    def error(self, path: KeyPath, problem: str) -> ConfigError:
        """Return the error of one key: a line with file (or `--set`), key and problem."""
        is_set = any(path == p[: len(path)] or p == path[: len(p)] for p in self.overridden)
        where = f"{self.where}, with --set" if is_set else self.where
        return ConfigError(": ".join(part for part in (where, ".".join(path), problem) if part))


def explain(
    error: ValidationError, options: type[Options], path: KeyPath, given: Any, origin: Origin
) -> ConfigError:
    """Return the first problem of a sub-tree as one line.

    Args:
        error: what pydantic found.
        options: the class that read the sub-tree.
        path: of the sub-tree.
        given: the sub-tree.
        origin: of the whole tree.
    """
    details = error.errors(include_url=False)
    first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
    inner = _path_of(first, given)
    where = (*path, *inner)
    if first["type"] == "value_error":
        return origin.error(where, str(first["ctx"]["error"]))
    reader = class_at(options, inner[:-1]) or options
    if first["type"] == "extra_forbidden":
        return origin.error(where, _unknown_key(where, first["input"], reader, origin))
    known = reader.model_fields.get(inner[-1]) if inner else None
    expected = describe_field(known) if known else _plain(first["msg"])
    if first["type"] == "missing":
        return origin.error(where, f"missing key, expected {expected}")
    hint = near_miss(str(first["input"]), choices(known.annotation)) if known else ""
    return origin.error(where, f"given {show(_at(given, inner))}, expected {expected}{hint}")


def near_miss(given: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` for a word that is nearly a known one, or nothing."""
    found = difflib.get_close_matches(given.lower(), list(known), n=1, cutoff=0.6)
    return f"; did you mean `{found[0]}`?" if found else ""


def show(value: Any) -> str:
    """Return a value as a config writes it, on one line, cut where it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def _path_of(details: ErrorDetails, given: Any) -> KeyPath:
    """Return the keys of an error; pydantic appends the names of union members to them."""
    path: list[str] = []
    for step in details["loc"]:
        is_key = isinstance(given, Mapping) and (step in given or details["type"] == "missing")
        if not is_key:
            break
        path.append(str(step))
        given = given.get(step)
    return tuple(path)


def _at(given: Any, path: KeyPath) -> Any:
    for key in path:
        given = given[key]
    return given


def _unknown_key(path: KeyPath, given: Any, reader: type[Options], origin: Origin) -> str:
    """Say what is known instead: a near miss, the same key elsewhere, or all keys."""
    *_, key = path
    problem = f"unknown key, given {show(given)}"
    hint = near_miss(key, reader.model_fields)
    if not hint:
        elsewhere = [p for p in all_paths(Config, origin.components) if p[-1] == key]
        hint = f"; did you mean `{'.'.join(elsewhere[0])}`?" if elsewhere else ""
    return f"{problem}{hint or ';'} expected one of {', '.join(reader.model_fields)}"


def _plain(message: str) -> str:
    return message.removeprefix("Input should be ")
