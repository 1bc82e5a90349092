"""Signals that ask this process to end, raised where it works: it leaves nothing half made."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = ("SIGTERM", "SIGHUP")  # by name: not every system has both


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
    """Within the block SIGTERM and SIGHUP raise `Ended`, as SIGINT raises KeyboardInterrupt.

    A signal that is ignored (`nohup`) stays ignored, and so is a second one while the first is
    cleaned up after.
    """
    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _frame: FrameType | None) -> None:
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        raise Ended(number)

    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
