"""Converts signals that end the process into an exception, so that commands can clean up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = ("SIGTERM", "SIGHUP", "SIGINT")  # names, because some systems lack a signal


class Ended(BaseException):
    """Raised by a signal that ends the process.

    It is not an Exception, so that `except Exception` does not catch it.

    Attributes:
        number: Number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """Exit code of the process, as in shells: 128 plus the number of the signal."""
        return 128 + self.number


@contextmanager
def raised_signals() -> Iterator[None]:
    """Context manager in which SIGTERM, SIGHUP and SIGINT raise `Ended`.

    Signals that are already ignored (`nohup`) stay ignored. After the first signal, only SIGINT
    raises again, so that clean-up is not interrupted. SIGINT does not raise KeyboardInterrupt: if
    it occurred within Python's `exec`, which `dataclass` uses during imports, Python would replace
    the command's exit code.
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
