"""Signals that ask to end are raised, unless somebody asked to ignore them."""

from __future__ import annotations

import signal

import pytest

from gcvae_cli.signals import Ended, raised_signals


def end_twice(number: signal.Signals) -> None:
    """Asked to end again while it cleans up."""
    with raised_signals():
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_raised_once_and_only_in_the_block(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # the tests themselves may run under nohup
    try:
        with pytest.raises(Ended) as ended:
            end_twice(number)
        assert ended.value.exit_code == 128 + number
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raised_signals():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interrupt_is_raised_each_time_and_is_python_s_own_afterwards() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(Ended) as ended:
            end_twice(signal.SIGINT)
        assert ended.value.exit_code == 130
        assert isinstance(ended.value.__context__, Ended)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
