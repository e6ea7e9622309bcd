"""Which part of a config belongs to which component, and who knows its options.

A component is a sub-tree with one key that chooses a class: `upstream: {name: sbc, ...}` is read
by the options class of `sbc`. A new component is an entry in the component's own table; nothing
here changes.
"""

import importlib
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from pydantic import create_model

from fedsbc.config.schema import DataConfig
from fedsbc.config.yaml_text import Tree
from fedsbc.options import Options

KeyPath: TypeAlias = tuple[str, ...]
"""The keys from the top of the tree down: `("clients", "optimizer", "lr")`."""


@dataclass(frozen=True)
class Component:
    """One sub-tree whose options class depends on one of its keys.

    Attributes:
        path: where the sub-tree stands in the config.
        chooser: the key that chooses the class.
        module: where the function `function(choice) -> type[Options]` is; imported when needed.
        function: its name; it raises `ConfigError`, listing what there is, for an unknown choice.
        default: the sub-tree where the config has none; None: it must be given.
        holder: class with a field for each inner component, where there are any.
    """

    path: KeyPath
    chooser: str
    module: str
    function: str = "options_for"
    default: Tree | None = field(default=None, hash=False)
    holder: type[Options] | None = None

    def options_for(self, choice: str) -> type[Options]:
        """Return the options class of a choice, for example of `sbc`.

        Raises:
            ConfigError: there is no such choice.
        """
        options: type[Options] = getattr(importlib.import_module(self.module), self.function)(
            choice
        )
        return options


COMPONENTS = (
    Component(("data", "partition"), "kind", "fedsbc.data.partition", default={"kind": "iid"}),
    Component(("data",), "name", "fedsbc.data", holder=DataConfig),
    Component(("model",), "name", "fedsbc.models"),
    Component(("clients", "optimizer"), "name", "fedsbc.training", "options_for_optimizer"),
    Component(
        ("clients", "schedule"),
        "kind",
        "fedsbc.training",
        "options_for_schedule",
        default={"kind": "constant"},
    ),
    Component(("availability",), "kind", "fedsbc.availability", default={"kind": "always"}),
    Component(("upstream",), "name", "fedsbc.compressors"),
    Component(("downstream",), "name", "fedsbc.compressors", default={"name": "none"}),
    Component(("network",), "profile", "fedsbc.network", default={"profile": "none"}),
)
"""Inner components come before those that hold them."""


@cache
def with_fields_of(options: type[Options], holder: type[Options]) -> type[Options]:
    """Return the options class with the fields of `holder` beside its own: its inner components."""
    return create_model(options.__name__, __base__=(options, holder), __doc__=options.__doc__)
