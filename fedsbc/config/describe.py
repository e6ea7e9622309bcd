"""What a key expects, in words, from the type of its field."""

import json
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as limits
from pydantic.fields import FieldInfo

from fedsbc.config.components import KeyPath
from fedsbc.options import Options

_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "null",
}
_LIMITS = {
    limits.Gt: ("gt", ">"),
    limits.Ge: ("ge", ">="),
    limits.Lt: ("lt", "<"),
    limits.Le: ("le", "<="),
    limits.MinLen: ("min_length", "of length >="),
    limits.MaxLen: ("max_length", "of length <="),
}


def describe(annotation: Any, metadata: tuple[Any, ...] = ()) -> str:
    """Return what a type accepts: `a number > 0 and <= 1`."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return describe(args[0], (*args[1:], *metadata))
    if origin in (Union, UnionType):
        return " or ".join(describe(arg) for arg in args)
    if origin is Literal:
        words = [arg if isinstance(arg, str) else json.dumps(arg) for arg in args]
        return "one of " + ", ".join(words) if len(words) > 1 else words[0]
    if origin in (list, tuple):
        items = f", each {describe(args[0])}" if args else ""
        return f"a list{_limits(metadata)}{items}"
    if is_options(annotation):
        return "a mapping with the keys " + ", ".join(annotation.model_fields)
    return _WORDS.get(annotation, "another value") + _limits(metadata)


def describe_field(field: FieldInfo) -> str:
    """Return what a field accepts."""
    return describe(field.annotation, tuple(field.metadata))


def is_options(annotation: Any) -> bool:
    """Whether a type is an options class."""
    return isinstance(annotation, type) and issubclass(annotation, Options)


def choices(annotation: Any) -> list[str]:
    """Return the words that a type lists: those of `Literal`s, also inside a union."""
    if get_origin(annotation) is Literal:
        return [word for word in get_args(annotation) if isinstance(word, str)]
    return [word for arg in get_args(annotation) for word in choices(arg)]


def class_at(options: type[Options], path: KeyPath) -> type[Options] | None:
    """Return the options class that reads the mapping at a path below `options`."""
    for key in path:
        field = options.model_fields.get(key)
        if field is None or not is_options(field.annotation):
            return None
        options = field.annotation  # type: ignore[assignment]  # an options class, just checked
    return options


def all_paths(options: type[Options], components: Mapping[KeyPath, type[Options]]) -> list[KeyPath]:
    """Return the path of every key of a tree, those of the given components included."""

    def walk(options: type[Options], path: KeyPath) -> list[KeyPath]:
        found = []
        for key, field in options.model_fields.items():
            inner: Any = components.get((*path, key), field.annotation)
            found.append((*path, key))
            found += walk(inner, (*path, key)) if is_options(inner) else []
        return found

    return walk(options, ())


def _limits(metadata: tuple[Any, ...]) -> str:
    """Return the range or the pattern that the metadata of a field ask for."""
    found = []
    for item in metadata:
        if isinstance(item, FieldInfo):
            found.append(_limits(tuple(item.metadata)).strip())
        elif type(item) in _LIMITS:
            attribute, sign = _LIMITS[type(item)]
            found.append(f"{sign} {getattr(item, attribute)}")
        elif getattr(item, "pattern", None):
            found.append(f"like {item.pattern}")
    text = " and ".join(part for part in found if part)
    return f" {text}" if text else ""
