"""Ctrl-C in three degrees."""

from __future__ import annotations

import signal
from queue import SimpleQueue
from typing import Any

import pytest

from tenlines.cli.signals import FIRST, SECOND, Stopper
from tenlines.drivers.control import Control


@pytest.fixture
def said() -> SimpleQueue[str]:
    return SimpleQueue()


def modes(control: Control) -> list[Any]:
    return [draft.fields["mode"] for draft in control.take()]


def test_each_interrupt_asks_for_more_and_the_third_is_python_s_own(said: SimpleQueue[str]) -> None:
    control = Control()
    with Stopper(control, said.put) as stopper:
        signal.raise_signal(signal.SIGINT)
        assert said.get(timeout=5) == FIRST
        assert modes(control) == ["drain"]
        signal.raise_signal(signal.SIGINT)
        assert said.get(timeout=5) == SECOND
        assert modes(control) == ["now"]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert stopper.signal == signal.SIGINT


def test_sigterm_stops_at_once_and_a_second_one_leaves(said: SimpleQueue[str]) -> None:
    control = Control()
    with Stopper(control, said.put):
        signal.raise_signal(signal.SIGTERM)
        assert said.get(timeout=5) == SECOND
        assert modes(control) == ["now"]
        with pytest.raises(SystemExit) as left:
            signal.raise_signal(signal.SIGTERM)
    assert left.value.code == 143


def test_the_handlers_of_before_come_back_and_what_was_ignored_stays_so(said: SimpleQueue[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    was = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stopper(Control(), said.put):
            assert signal.getsignal(signal.SIGINT) is not before
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, was)
    assert signal.getsignal(signal.SIGINT) is before
