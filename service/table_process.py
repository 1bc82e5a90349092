"""Reads and writes tables in separate processes with limits on memory and processor time.

A hostile file can therefore crash only the process that reads it, and the error names the exceeded
limit. Each call gets a new process, so that its memory is freed afterwards.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

from structlog.contextvars import get_contextvars

from gcvae.errors import GcvaeError, Problem
from runtime.logs import log_context
from runtime.processes import answer_all, received_file
from service.errors import ProcessDiedError, ServiceError, TableLimitError
from service.inline.process import FORK_SERVER, Raised, start_isolated
from service.settings import ServiceSettings

ResultT = TypeVar("ResultT")

_FAULTS = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS)
"""Exit codes of a process whose native code ran out of memory or crashed."""
_KILL_AFTER_SECONDS = 5
"""Processor seconds between the soft limit (SIGXCPU) and the hard limit (SIGKILL)."""
_ROOM_BYTES = 1 << 25  # about what the stacks of threads need
_EXPECTED = "a smaller table or shorter cells"


def read_isolated(
    work: Callable[[BinaryIO], ResultT],
    file: BinaryIO,
    settings: ServiceSettings,
    *,
    mode: Literal["rb", "r+b"] = "rb",
    time_limit: str | None = None,
) -> ResultT:
    """Calls `work(file)` in a new process with limits, and returns its result. Blocks.

    Args:
        work: Picklable function.
        file: File on this machine's disk; the process reads it from the start.
        mode: `r+b` if the work writes to the file.
        time_limit: Name of the setting that limits the elapsed seconds; None for no limit.

    Raises:
        TableLimitError: The work exceeded its limit on memory, processor time or elapsed time.
        ProcessDiedError: The process was killed.
        Exception: Any exception of `work`.
    """
    process = FORK_SERVER.fork(_serve, settings, mode)
    seconds: float | None = None if time_limit is None else getattr(settings, time_limit)
    try:
        process.hand_over(file)
        if seconds is not None:
            process.ask(None)  # the start of the process does not count
        value, raised = process.ask((work, get_contextvars()), seconds)
    except TimeoutError as error:
        assert time_limit is not None
        assert seconds is not None
        problem = Problem("it takes too long", expected="a host that answers sooner, or less data")
        what = "the connection took too long"
        raise TableLimitError(what, seconds, time_limit, problem) from error
    except EOFError as error:
        process.kill()
        raise _death(process.exit_code, settings) from error
    finally:
        process.close()
    if raised is not None:
        why = raised.error()
        if isinstance(why, MemoryError):
            raise _out_of_memory(settings) from why
        raise why
    found: ResultT = value
    return found


def _death(exit_code: int | None, settings: ServiceSettings) -> ServiceError:
    if exit_code == -signal.SIGXCPU:
        problem = Problem("reading it takes too long", expected=_EXPECTED)
        what = "the table took too much processor time"
        return TableLimitError(what, settings.table_seconds, "table_seconds", problem)
    return _out_of_memory(settings) if exit_code in _FAULTS else ProcessDiedError()


def _out_of_memory(settings: ServiceSettings) -> TableLimitError:
    problem = Problem("reading it takes too much memory", expected=_EXPECTED)
    what = "the table took too much memory"
    return TableLimitError(what, settings.table_memory_bytes, "table_memory_bytes", problem)


def _serve(pipe: Connection, settings: ServiceSettings, mode: Literal["rb", "r+b"]) -> None:
    start_isolated(settings)
    with received_file(pipe, mode) as file:
        _limit(settings)
        answer_all(pipe, partial(_answer, file))


def _answer(
    file: BinaryIO, question: tuple[Callable[[BinaryIO], Any], dict[str, Any]] | None
) -> tuple[Any, Raised | None]:
    """Calls a function with the file. Returns (result, None); (None, exception) if it failed.

    `question` is (function, ids for log lines), or None only to test that the process responds.
    """
    if question is None:
        return None, None
    work, ids = question
    with log_context(**ids):
        try:
            return work(file), None
        except (GcvaeError, ServiceError, MemoryError) as error:
            return None, Raised.of(error)
        except Exception as error:  # libraries report missing memory by various exceptions
            return None, Raised.of(error if _has_room() else MemoryError())


def _has_room() -> bool:
    try:
        bytearray(_ROOM_BYTES)
    except MemoryError:
        return False
    return True


def _limit(settings: ServiceSettings) -> None:
    """Limits the processor time of this process, and its memory to `table_memory_bytes` more than
    it uses now. Core dumps are turned off."""
    seconds = settings.table_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _KILL_AFTER_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # other systems lack this limit or do not enforce it
        *_, data_pages, _ = Path("/proc/self/statm").read_text().split()
        most = int(data_pages) * os.sysconf("SC_PAGE_SIZE") + settings.table_memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
