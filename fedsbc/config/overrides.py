"""`--set a.b=c`: keys of a config that are set on the command line."""

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from fedsbc.config.components import COMPONENTS, Component, KeyPath
from fedsbc.config.yaml_text import Tree, parse
from fedsbc.errors import ConfigError

_TOGETHER = ""


def apply(tree: Tree, overrides: Sequence[str]) -> tuple[Tree, frozenset[KeyPath]]:
    """Return the tree with the overrides applied in their order, and the paths that they set.

    A value is read as YAML: `--set upstream.density=1e-3`, `--set 'data={name: mnist-5k}'`,
    `--set engine.address=` (null). Where an override chooses another component
    (`--set upstream.name=topk`), options in the file that the old one takes and the new one does
    not are dropped; those that both take are kept; what an override says is never dropped.

    Args:
        tree: the config as it is in the file.
        overrides: `key.path=value`, the later one wins.

    Raises:
        ConfigError: an override is not `key.path=value`, or leads through something that is not
            a mapping.
    """
    changed = deepcopy(tree)
    paths = set()
    for override in overrides:
        path, value = _read(override)
        _put(changed, path, value, override)
        paths.add(path)
    for component in COMPONENTS:
        _drop_stale(component, tree, changed, paths)
    return changed, frozenset(paths)


def _read(override: str) -> tuple[KeyPath, Any]:
    """Return path and value of one `key.path=value`."""
    left, equals, right = override.partition("=")
    path = tuple(left.strip().split("."))
    if not equals or not all(path):
        raise ConfigError(f"--set {override}: expected key.path=value, like upstream.density=0.01")
    return path, parse(right, f"--set {override}")


def _put(tree: Tree, path: KeyPath, value: Any, override: str) -> None:
    """Set one key, making the mappings on the way to it."""
    for depth, key in enumerate(path[:-1], 1):
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"--set {override}: {'.'.join(path[:depth])} is not a mapping")
    tree[path[-1]] = value


def _drop_stale(component: Component, before: Tree, after: Tree, paths: set[KeyPath]) -> None:
    """Take out what the file says for a component that was replaced by an override."""
    if (*component.path, component.chooser) not in paths:
        return
    old, new = subtree(before, component.path), subtree(after, component.path)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    depth = len(component.path)
    is_set = {path[depth] for path in paths if path[:depth] == component.path and path[depth:]}
    of_file = old.keys() & new.keys() - is_set - {component.chooser}
    for key in of_file & (_refused(component, new) - _refused(component, old)):
        del new[key]
    if _refused(component, new) == {_TOGETHER}:
        kept = sorted(of_file & new.keys())
        culprits = (key for key in kept if not _refused(component, _without(new, key)))
        new.pop(next(culprits, ""), None)


def _without(tree: Tree, key: str) -> Tree:
    return {k: v for k, v in tree.items() if k != key}


def _refused(component: Component, given: Tree) -> set[str]:
    """Return the keys of a sub-tree that its options class does not take as they are.

    `_TOGETHER` stands for options that are good each by itself and contradict one another.
    """
    inner = {c.path[-1] for c in COMPONENTS if c.path[:-1] == component.path}
    plain = {key: value for key, value in given.items() if key not in inner}
    try:
        component.options_for(given[component.chooser]).model_validate_json(json.dumps(plain))
    except ValidationError as error:
        return {str((*details["loc"], _TOGETHER)[0]) for details in error.errors()}
    except (ConfigError, KeyError, TypeError):
        return set()
    return set()


def subtree(tree: Tree, path: KeyPath) -> Any:
    """Return what stands at a path, or None."""
    found: Any = tree
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found
