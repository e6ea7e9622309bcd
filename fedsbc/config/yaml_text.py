"""YAML without its surprises, in both directions.

The scalars are those of YAML 1.2: `1e-3` is a number, `yes`, `no`, `on`, `off` and dates are text,
`010` and `1_000` are text as well (and are refused where a number is asked, instead of being read
as 8 and 1000). A key that is given twice is an error. Only plain data comes out: mappings with
text keys, lists, text, numbers, booleans and null.
"""

import json
import re
from collections.abc import Hashable
from typing import Any, TypeAlias

import yaml

from fedsbc.errors import ConfigError

Tree: TypeAlias = dict[str, Any]
"""A mapping as YAML or JSON gives it: text keys; plain values, lists and mappings inside."""

_SCALARS = [
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
]


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return the table by which PyYAML tells text from other scalars, by first character."""
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for kind, pattern, first_characters in _SCALARS:
        entry = (f"tag:yaml.org,2002:{kind}", re.compile(f"(?:{pattern})$"))
        for first in first_characters:
            table.setdefault(first, []).append(entry)
    return table


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the scalars above and without duplicate keys."""

    yaml_implicit_resolvers = _resolvers()

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping; a key that is given twice is an error."""
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                _refuse(f"the key {str(key)!r} is not text", key_node)
            if key in seen:
                _refuse(f"duplicate key `{key}`", key_node)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _all_resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return the scalars above and those of YAML 1.1."""
    old, new = yaml.SafeDumper.yaml_implicit_resolvers, _resolvers()
    return {first: new.get(first, []) + old.get(first, []) for first in old | new}


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper: quotes text that a reader of YAML 1.1 or 1.2 would not read as text."""

    yaml_implicit_resolvers = _all_resolvers()

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out: a run's config has no anchors."""
        return True


def _float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    """Read a float; PyYAML's own reader knows base 60 and underscores as well."""
    text = str(node.value).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


def _int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    """Read a decimal whole number; PyYAML's own reader knows octal and base 60 as well."""
    return int(node.value)


def _undefined(loader: yaml.SafeLoader, node: yaml.Node) -> None:
    """Refuse a tag whose values are not plain data."""
    _refuse(f"the tag {node.tag!r} is not for configs", node)


_Loader.add_constructor("tag:yaml.org,2002:float", _float)
_Loader.add_constructor("tag:yaml.org,2002:int", _int)
for _tag in ("timestamp", "binary", "set", "omap", "pairs"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _undefined)


def _refuse(problem: str, node: yaml.Node) -> None:
    """Raise an error that knows its line."""
    raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def parse(text: str, where: str) -> Any:
    """Return the plain data that a YAML text stands for.

    Args:
        text: one YAML document.
        where: the file or option that the text is from, for the message.

    Raises:
        ConfigError: the text is not YAML, has a duplicate key, or holds more than plain data.
    """
    try:
        data = yaml.load(text, _Loader)
        json.dumps(data)  # refuses a list or mapping that holds itself, by an alias
        return data
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        said = " ".join(part for part in (error.context, error.problem) if part)
        raise ConfigError(f"{where}{line}: {_one_line(said)}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{where}: not YAML: {_one_line(str(error))}") from None
    except RecursionError:
        raise ConfigError(f"{where}: not a config: nested too deeply") from None


def dump(tree: Tree) -> str:
    """Return the YAML text of plain data, keys in their order; `parse` reads it back as it was."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _one_line(text: str) -> str:
    return " ".join(text.split())
