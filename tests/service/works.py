"""Pieces of inline work for tests. A process of inline work imports them from here."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.job_kinds import JobKind
from gcvae.errors import ConditionError, Problem
from models_store.errors import CorruptedError
from service.inline.process import InlineContext, Streamed

if TYPE_CHECKING:
    from gcvae.dependence.maps import DependencyMap

_SECONDS = 20.0


def wait_for(_bench: InlineContext, path: Path) -> Path:
    """The path, once there is a file."""
    ends_at = time.monotonic() + _SECONDS
    while not path.exists():
        assert time.monotonic() < ends_at, f"nobody made {path}"
        time.sleep(0.005)
    return path


def own_pid(_bench: InlineContext) -> int:
    """The process's id."""
    return os.getpid()


def has_torch(_bench: InlineContext) -> bool:
    """Whether torch is imported; nothing here imports it."""
    return "torch" in sys.modules


def niceness(_bench: InlineContext) -> int:
    """The process's own."""
    return os.getpriority(os.PRIO_PROCESS, 0)


def n_streams(context: InlineContext) -> int:
    """How many streams are open in the process."""
    return len(context.streams)


def kept_map(context: InlineContext, key: tuple[str, ...]) -> DependencyMap:
    """The map that is kept under a key; none is made."""

    def fail() -> Any:
        raise AssertionError("the map is not kept")

    return context.maps.get(key, fail)


def be_killed(_bench: InlineContext) -> None:
    """As by the kernel when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def stream(context: InlineContext, chunks: tuple[bytes, ...]) -> Streamed:
    """The chunks, their bytes counted as rows."""
    return Streamed(context.tally.count_rows(JobKind.SAMPLE, chunks), {"n_chunks": len(chunks)})


def stream_pids(_bench: InlineContext, n: int) -> Streamed:
    """The process's id, n times."""
    return Streamed(str(os.getpid()).encode() for _ in range(n))


def stream_and_die(_bench: InlineContext) -> Streamed:
    """One chunk and no more."""

    def chunks() -> Iterator[bytes]:
        yield b"one"
        os.kill(os.getpid(), signal.SIGKILL)

    return Streamed(chunks())


def refuse(_bench: InlineContext) -> None:
    """An error of the library, with its problems."""
    raise ConditionError(Problem("no such level", "/given/fuel", expected="petrol"))


def damage(_bench: InlineContext) -> None:
    """An error that is made of other things than it says."""
    raise CorruptedError("models/m/artifact", "aa", "bb")


class HeldError(Exception):
    """Holds what cannot leave the process."""

    def __init__(self) -> None:
        super().__init__("held")
        self.held = (number for number in range(3))


def hold(_bench: InlineContext) -> None:
    """An error that cannot be pickled."""
    raise HeldError
