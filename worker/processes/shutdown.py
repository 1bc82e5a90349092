"""A flag that a process shares with those it forks."""

from __future__ import annotations

import mmap


class SharedFlag:
    """Not set at first; once set, set for ever, in every process forked from this one.

    A byte in shared memory, without a lock: a process killed while it looks blocks nobody.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1)

    def set(self) -> None:
        """Set it for all."""
        self._memory[0] = 1

    def is_set(self) -> bool:
        """True where any process has set it."""
        return self._memory[0] == 1
