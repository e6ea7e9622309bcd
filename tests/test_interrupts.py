"""Signals at moments that must not be cut short."""

import signal

import pytest

import strategies.app
from fedsbc import interrupts
from fedsbc.run_folder import RunFolder
from tests.experiments import small
from tests.strategies.test_resume import begin


@pytest.fixture(autouse=True)
def ctrl_c():
    """Have Python's own handler for Ctrl-C, also where a shell started us with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_waits_until_the_end():
    done = []

    def body():
        with interrupts.deferred():
            signal.raise_signal(signal.SIGINT)
            done.append("the rest")

    with pytest.raises(KeyboardInterrupt):
        body()
    assert done == ["the rest"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_a_signal_nothing_is_changed():
    before = [signal.getsignal(number) for number in interrupts.SIGNALS]
    with interrupts.deferred():
        pass
    assert [signal.getsignal(number) for number in interrupts.SIGNALS] == before


def test_an_error_goes_through_and_handlers_come_back():
    with pytest.raises(ValueError, match="bad"), interrupts.deferred():
        raise ValueError("bad")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("moment", ["summarise", "write_report"])
def test_a_run_that_is_stopped_after_its_last_round_is_whole(tmp_path, monkeypatch, moment):
    real = getattr(strategies.app, moment)

    def stopped(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(strategies.app, moment, stopped)
    with pytest.raises(KeyboardInterrupt):
        begin(small("rounds=2"), tmp_path / "run")
    folder = RunFolder.open(tmp_path / "run")
    assert folder.summary().completed
    assert folder.ledger().rows
    assert folder.model()
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
