"""What a worker asks of torch itself, without torch, whose import takes seconds in each job."""

from __future__ import annotations


class OutOfMemoryError(RuntimeError):
    """The error of a GPU whose memory is too small."""


class cuda:  # noqa: N801  # the name of torch's module
    """No GPU."""

    @staticmethod
    def is_available() -> bool:
        return False

    @staticmethod
    def device_count() -> int:
        return 0


def set_num_threads(_n: int) -> None:
    """Threads are torch's own: there are none."""
