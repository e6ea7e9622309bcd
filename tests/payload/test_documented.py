"""What docs/payload.md says about the bytes is so."""

import re
from pathlib import Path

import numpy as np

import fedsbc.payload
from fedsbc.layout import Layout
from fedsbc.payload import encode, measure
from fedsbc.payload.kinds import KINDS
from fedsbc.updates import SparseMeanBlock, Update

PAGE = (Path(__file__).parents[2] / "docs" / "payload.md").read_text()


def test_the_example_of_the_page_worked_by_hand() -> None:
    layout = Layout.of([("weight", (10, 20)), ("bias", (5,))])
    update = Update(
        layout,
        [
            SparseMeanBlock(200, np.array([3, 5, 40, 41, 100]), np.float32(-0.125)),
            SparseMeanBlock(5, np.array([4]), np.float32(0.5)),
        ],
    )
    example = PAGE.split("## An example")[1].split("```")[1]
    shown = " ".join(re.findall(r"^((?:[0-9a-f]{2} )*[0-9a-f]{2})(?:  |$)", example, re.MULTILINE))
    assert encode(update).hex(" ") == shown
    bits = measure(encode(update), layout)
    assert (bits.num_kept, bits.position_bits, bits.value_bits) == (6, 36, 64)
    assert (bits.header_bits, bits.padding_bits) == (160, 20)


def test_page_and_docstring_have_the_same_tables() -> None:
    docstring = fedsbc.payload.__doc__ or ""
    rows = [line for line in docstring.splitlines() if line.startswith("| ")]
    assert len(rows) > 25
    for row in rows:
        start = row.rstrip("| ")
        assert start in PAGE, start


def test_every_kind_is_in_the_table() -> None:
    for kind in KINDS:
        assert f"| {kind.code} | {kind.block.__name__} |" in PAGE
