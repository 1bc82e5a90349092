"""Converts signals to an exception, so that commands can clean up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = ("SIGTERM", "SIGHUP", "SIGINT")  # by name, because not every system has all


class Ended(BaseException):
    """The process was asked to end. Not an Exception, so that `except Exception` does not catch
    it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """Exit code of shells for this signal."""
        return 128 + self.number


@contextmanager
def raised_signals() -> Iterator[None]:
    """Makes SIGTERM, SIGHUP and SIGINT raise `Ended` in the block.

    Ignored signals (`nohup`) stay ignored, and so are further signals during clean-up, except
    SIGINT. KeyboardInterrupt is not used, because Python would end with its own exit code if it
    occurs within `exec`.
    """
    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    usual = signal.SIG_DFL, signal.default_int_handler
    taken = [number for number in numbers if before[number] in usual]

    def end(number: int, _frame: FrameType | None) -> None:
        for other in taken:
            if other != signal.SIGINT:
                signal.signal(other, signal.SIG_IGN)
        raise Ended(number)

    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])
