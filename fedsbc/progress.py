"""How a run is going: one live line on a terminal, a line now and then elsewhere."""

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TextIO

from fedsbc.ledger import RunTotals
from fedsbc.records import RoundRecord
from fedsbc.units import human_bits, human_ratio, human_seconds, human_share

_LABELS_FROM_COLUMNS, _BAR_FROM_COLUMNS = 96, 116
"""Widths of a terminal from which there is room for labels, and for a bar beside the words."""

_EVERY_S, _EVERY_SHARE = 5.0, 0.02
"""Lines of a log are at least 5 s apart, and at least 2% of the time since the start: a run of
an hour writes about 150 lines, one of a day about 300."""


class Progress:
    """Shows a run's rounds as they end, on the standard error stream.

    Bits are payload bits so far, over all clients; ×N is N times fewer than dense FedAvg.

    Args:
        rounds: number of rounds of the whole run.
        name: the run's name.
        stream: where to show it, if not on the standard error stream.
        clock: seconds that only grow; for tests.
    """

    def __init__(
        self,
        rounds: int,
        name: str,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rounds, self._name, self._clock = rounds, name, clock
        self._stream = stream if stream is not None else sys.stderr
        self._start_s = self._last_shown_s = clock()
        self._num_updates = 0
        self._accuracy: float | None = None
        self._unshown = ""
        self._live = _live(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def update(self, record: RoundRecord, totals: RunTotals) -> None:
        """Show that a round has ended.

        Args:
            record: the round; where it was not evaluated the last accuracy stays.
            totals: where the run stands, over all clients (`Ledger.run_totals()`).
        """
        self._num_updates += 1
        if record.accuracy is not None:
            self._accuracy = record.accuracy
        line = self._line(record.round, totals)
        if self._live is not None:
            _show(self._live, line, record.round, self._rounds)
        else:
            self._log(line)

    def note(self, text: str) -> None:
        """Show a line that stays, above the live one where there is one."""
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """Leave the last line standing; call it however the run ended."""
        if self._live is not None:
            self._live.stop()
        elif self._unshown:
            self._write(self._unshown)

    def _line(self, round: int, totals: RunTotals) -> str:
        """Return the line after a round."""
        short = self._live is not None and self._live.console.width < _LABELS_FROM_COLUMNS
        up, down = human_bits(totals.up.payload_bits), human_bits(totals.down.payload_bits)
        parts = [
            self._name,
            f"{'' if short else 'round '}{round}/{self._rounds}",
            f"{'' if short else 'acc. '}{human_share(self._accuracy)}",
            f"up {up} {human_ratio(totals.up_ratio_fedavg)}",
            f"down {down} {human_ratio(totals.down_ratio_fedavg)}",
            self._time(round),
        ]
        return "  ".join(parts)

    def _time(self, round: int) -> str:
        """Return how long the rest takes at the speed so far, or how long all took."""
        spent_s = self._clock() - self._start_s
        if round >= self._rounds:
            return human_seconds(spent_s)
        return f"{human_seconds(spent_s / self._num_updates * (self._rounds - round))} left"

    def _log(self, line: str) -> None:
        """Write the line if it is the first or some time has passed, else keep it."""
        now_s = self._clock()
        wait_s = max(_EVERY_S, _EVERY_SHARE * (now_s - self._start_s))
        if self._num_updates == 1 or now_s - self._last_shown_s >= wait_s:
            self._last_shown_s = now_s
            self._write(line)
        else:
            self._unshown = line

    def _write(self, line: str) -> None:
        """Write one line to the log."""
        self._unshown = ""
        print(line, file=self._stream, flush=True)


def _live(stream: TextIO) -> Any:
    """Return a started live display of rich; None where lines are to be written instead."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError:
        return None
    live = Live(console=Console(file=stream), auto_refresh=False)
    live.start()
    return live


def _show(live: Any, line: str, round: int, rounds: int) -> None:
    """Draw the line anew, with a bar before it where there is room."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    words = Text(line, no_wrap=True, overflow="ellipsis")
    if live.console.width < _BAR_FROM_COLUMNS:
        live.update(words, refresh=True)
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_row(ProgressBar(total=rounds, completed=round, width=16), words)
    live.update(grid, refresh=True)
