"""Signals that ask this process to end, raised where it works: it leaves nothing half made."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = ("SIGTERM", "SIGHUP", "SIGINT")  # by name: not every system has all


class Ended(BaseException):
    """The process was asked to end. No error: it passes every `except Exception`."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """What shells make of a process that a signal ended."""
        return 128 + self.number


@contextmanager
def raised_signals() -> Iterator[None]:
    """Within the block SIGTERM, SIGHUP and SIGINT raise `Ended`.

    A signal that is ignored (`nohup`) stays ignored, and so is a second one while the first is
    cleaned up after, but for SIGINT: who presses twice does not want to wait. It is no
    KeyboardInterrupt here, for of one that came within an `exec` Python would die in the end,
    whatever the exit code.
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
