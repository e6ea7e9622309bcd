"""The progress line: what it says, on a terminal and in a log."""

import io
import re
import sys

import pytest

from fedsbc.ledger import Ledger, LedgerRow
from fedsbc.progress import Progress
from fedsbc.records import RoundRecord


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def record(round: int, accuracy: float | None = None) -> RoundRecord:
    return RoundRecord(round, accuracy, None, None, 0, 0, 0.0, 0.0, 1, 0)


def totals_after(round: int) -> Ledger:
    up = [LedgerRow(r, 0, "up", "train", 1, 80, 0, 0, 0, 80, 0, 32_000) for r in range(round)]
    down = [LedgerRow(r, 0, "down", "train", 1, 0, 32_000, 0, 0, 32_000, 0, 32_000) for r in (0,)]
    return Ledger(up + down)


def run(progress: Progress, clock: Clock, rounds: int, round_s: float) -> None:
    for round in range(1, rounds + 1):
        clock.now_s += round_s
        accuracy = 0.9 if round == 1 else None
        progress.update(record(round, accuracy), totals_after(min(round, 5)).run_totals())
    progress.close()


def test_a_log_line_says_where_the_run_stands_and_how_long_it_takes() -> None:
    stream, clock = io.StringIO(), Clock()
    run(Progress(10, "sbc", stream=stream, clock=clock), clock, 10, round_s=30)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[3] == (
        "sbc  round 4/10  acc. 90.00%  up 320 bit ×400  down 32.0 kbit ×1.00  3 min 00 s left"
    )
    assert lines[-1].endswith("5 min 00 s")


def test_time_left_counts_only_the_rounds_that_this_process_ran() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Progress(100, "sbc", stream=stream, clock=clock)
    clock.now_s += 2
    progress.update(record(91), totals_after(1).run_totals())  # resumed after round 90
    assert stream.getvalue().rstrip().endswith("18.0 s left")


def test_fast_rounds_do_not_flood_a_log_and_the_last_round_is_shown() -> None:
    stream, clock = io.StringIO(), Clock()
    run(Progress(2000, "sbc", stream=stream, clock=clock), clock, 2000, round_s=0.1)
    lines = stream.getvalue().splitlines()
    assert 30 <= len(lines) <= 50
    assert "round 1/2000" in lines[0]
    assert "round 2000/2000" in lines[-1]
    assert sum("2000/2000" in line for line in lines) == 1


def test_a_terminal_shows_one_line_that_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "140")
    stream, clock = Terminal(), Clock()
    with Progress(4, "[b]sbc[/b]", stream=stream, clock=clock) as progress:
        run(progress, clock, 4, round_s=1)
    drawn = stream.getvalue()
    assert "━" in drawn  # the bar
    assert drawn.count("round 3/4") == 1
    assert "[b]sbc[/b]" in drawn
    assert re.search(r"round 4/4  acc. 90.00%  up 320 bit ×400", drawn)
    assert drawn.replace("\x1b[?25h", "").endswith("\n")


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["log", "terminal"])
def test_a_note_has_its_own_line_and_is_never_markup(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    clock = Clock()
    with Progress(9, "sbc", stream=stream, clock=clock) as progress:
        progress.update(record(1), totals_after(1).run_totals())
        progress.note("round 1, client 3: [b]no[/b] " + "x" * 90)
        progress.update(record(2), totals_after(2).run_totals())
    plain = re.sub(r"\x1b\[[0-9?;]*[a-zA-Z]", "", stream.getvalue())
    lines = re.split(r"[\r\n]+", plain)
    assert "round 1, client 3: [b]no[/b] " + "x" * 90 in lines
    assert any("2/9" in line for line in lines)


def test_a_narrow_terminal_gets_the_figures_without_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    stream, clock = Terminal(), Clock()
    run(Progress(9, "sbc", stream=stream, clock=clock), clock, 4, round_s=40)
    line = "sbc  4/9  90.00%  up 320 bit ×400  down 32.0 kbit ×1.00  3 min 20 s left"
    assert line in stream.getvalue()


@pytest.mark.parametrize("missing", ["rich", None])
def test_without_rich_or_on_a_dumb_terminal_lines_are_written(
    missing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm" if missing else "dumb")
    if missing:
        for name in ("rich", "rich.console", "rich.live"):
            monkeypatch.setitem(sys.modules, name, None)
    stream, clock = Terminal(), Clock()
    run(Progress(2, "sbc", stream=stream, clock=clock), clock, 2, round_s=9)
    assert [line.split()[2] for line in stream.getvalue().splitlines()] == ["1/2", "2/2"]
    assert "\x1b" not in stream.getvalue()


def test_rich_is_not_loaded_with_the_module() -> None:
    import subprocess

    code = "import sys, fedsbc.progress; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
