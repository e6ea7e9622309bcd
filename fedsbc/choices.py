"""Looking a name up in a table of components, with an error that helps."""

import difflib
from collections.abc import Mapping
from typing import TypeVar

from fedsbc.errors import ConfigError

Component = TypeVar("Component")


def choose(what: str, name: str, table: Mapping[str, Component]) -> Component:
    """Return the component of that name.

    Args:
        what: what the table holds, for the message, for example `model`.
        name: the name that was given.
        table: the known components by name.

    Raises:
        ConfigError: the name is unknown; the message gives the near miss and the known ones.
    """
    if name in table:
        return table[name]
    near = difflib.get_close_matches(str(name), table, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ConfigError(f"unknown {what} {name!r}: {hint}known: {', '.join(sorted(table))}")
