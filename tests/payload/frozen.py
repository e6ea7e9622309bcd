"""Payloads that were written once and are decoded for ever: `frozen.json`.

Each case holds the layout, the blocks field by field, and the bytes as hex. A new kind or coding
adds cases; the bytes of those that are there never change.
"""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from fedsbc import blocks
from fedsbc.layout import Layout
from fedsbc.updates import Block, Update

PATH = Path(__file__).with_name("frozen.json")
_DTYPES = {
    "positions": np.int64,
    "negative": np.bool_,
    "levels": np.int16,
    "values": np.float32,
    "scales": np.float32,
}
_SCALARS = ("mean", "positive_mean", "negative_mean", "scale")


def load() -> list[dict[str, Any]]:
    """Return the cases."""
    cases: list[dict[str, Any]] = json.loads(PATH.read_text())
    return cases


def update_of(case: dict[str, Any]) -> Update:
    """Return the update of a case."""
    layout = Layout.of((name, shape) for name, shape in case["layout"])
    return Update(layout, [_block(dict(described)) for described in case["blocks"]])


def _block(described: dict[str, Any]) -> Block:
    kind = getattr(blocks, described.pop("kind"))
    assert set(described) == {field.name for field in fields(kind)}
    block: Block = kind(**{name: _value(kind, name, v) for name, v in described.items()})
    return block


def _value(kind: type, name: str, value: Any) -> Any:
    if name in _SCALARS:
        return np.float32(value)
    if isinstance(value, list):
        half = kind is blocks.HalfBlock
        return np.array(value, np.float16 if half else _DTYPES[name])
    return int(value)
