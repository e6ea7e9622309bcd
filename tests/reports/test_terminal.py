"""The table for a terminal, with rich and without."""

import sys
from collections.abc import Callable

import pytest

from fedsbc.report import table
from fedsbc.run_folder import RunFolder

Make = Callable[..., RunFolder]


def test_each_run_is_a_line_with_its_figures(make_run: Make) -> None:
    lines = table([make_run("fedavg", up_bits=32_048), make_run("sbc")]).splitlines()
    (fedavg,) = (" ".join(line.split()) for line in lines if line.startswith("fedavg"))
    (sbc,) = (" ".join(line.split()) for line in lines if line.startswith("sbc"))
    # 8 messages each way; up 256,384 or 2,560 bits, down 256,384 bits, dense 256,000 bits.
    assert fedavg == "fedavg 75.00% 50.00% 256 kbit ×1.00 ×9.99 256 kbit ×1.00 2.0 s"
    assert sbc == "sbc 75.00% 50.00% 2.56 kbit ×100 ×1,000 256 kbit ×1.00 2.0 s"
    assert max(map(len, lines)) <= 88
    assert lines[-2].startswith("Bits are payload bits, summed over all clients")


def test_without_rich_the_table_says_the_same(
    make_run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [make_run("fedavg"), make_run("[bold]odd[/bold]", path="odd", second_s=90)]
    with_rich = table(folders)
    monkeypatch.setitem(sys.modules, "rich", None)
    without = table(folders)
    assert "─" in with_rich
    assert "─" not in without
    assert without.split() == [word for word in with_rich.split() if "─" not in word]
    assert "[bold]odd[/bold]" in without
    assert "6 min 00 s" in without


def test_a_run_that_goes_on_is_marked(make_run: Make) -> None:
    text = table([make_run("sbc", ended=False)])
    assert "sbc *" in text
    assert text.endswith("* has not come to its end")
