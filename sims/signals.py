"""Ctrl-C and SIGTERM: both raise KeyboardInterrupt in the main thread, and are remembered.

What is raised by a signal handler may be lost where no Python code is there to catch it (in a
destructor, in compiled code), so whoever waits asks again.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from fedsbc.interrupts import SIGNALS

_received: list[int] = []


def _handle(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt


@contextmanager
def raising() -> Iterator[None]:
    """Turn both signals into KeyboardInterrupt for a while; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _received.clear()
    before = [signal.signal(number, _handle) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def kept() -> Iterator[None]:
    """Keep our handlers through a library's start: it sets its own, in Python and below it."""
    set_handler = signal.signal

    def set_other(number: int, handler: Any) -> Any:
        return None if number == signal.SIGTERM else set_handler(number, handler)

    signal.signal = set_other  # type: ignore[assignment]  # narrower, as Ray calls it
    try:
        yield
    finally:
        signal.signal = set_handler
        if signal.getsignal(signal.SIGTERM) is _handle:
            for number in SIGNALS:  # once more, in place of what compiled code has set
                signal.signal(number, _handle)


def check() -> None:
    """Raise KeyboardInterrupt if a signal came and what it raised was lost."""
    if _received:
        raise KeyboardInterrupt


def exit_status() -> int:
    """Return 128 and the number of the last signal, as a shell counts: 130 for Ctrl-C."""
    return 128 + (_received[-1] if _received else signal.SIGINT)
