"""Ctrl-C and SIGTERM at moments that must not be cut short."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def deferred() -> Iterator[None]:
    """Let signals wait until the body has ended; they then do what they would have done.

    For what takes a second or two and must be whole. Only the main thread gets signals: in another
    one this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = [signal.signal(each, lambda number, _: came.append(number)) for each in SIGNALS]
    try:
        yield
    finally:
        for each, handler in zip(SIGNALS, before, strict=True):
            signal.signal(each, handler)
        for number in came[:1]:
            signal.raise_signal(number)
