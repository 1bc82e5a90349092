"""A table is read in a process of its own, with limits of memory and processor time.

A hostile file ends that process, and nothing else: the service says what was exceeded, and answers
others meanwhile. Each piece of work gets a fresh process, and what it took goes back with it.
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
from typing import Any, BinaryIO, TypeVar

from structlog.contextvars import get_contextvars

from gcvae.errors import GcvaeError, Problem
from runtime.logs import log_context
from runtime.processes import answer_all, received_file
from service.errors import ProcessDiedError, ServiceError, TableLimitError
from service.inline.process import FORK_SERVER, Raised, begin_apart
from service.settings import ServiceSettings

ResultT = TypeVar("ResultT")

_FAULTS = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS)
"""How native code ends that gets no memory, or stumbles over what it reads."""
_KILL_AFTER_SECONDS = 5
"""Processor time from the signal of the limit to the one that nothing survives."""
_ROOM_BYTES = 1 << 25  # the stacks of some threads
_EXPECTED = "a smaller table or shorter cells"


def read_apart(
    work: Callable[[BinaryIO], ResultT], file: BinaryIO, settings: ServiceSettings
) -> ResultT:
    """What `work`, a function of a module with its arguments, makes of the file. It waits for it.

    Args:
        file: on this disk; whoever calls may read it again afterwards, from its beginning.

    Raises:
        TableLimitError: the work took more memory or processor time than it may.
        ProcessDiedError: the process was killed from outside.
        Exception: whatever the work raises.
    """
    process = FORK_SERVER.fork(_serve, settings)
    try:
        process.hand_over(file)
        value, raised = process.ask((work, get_contextvars()))
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


def _serve(pipe: Connection, settings: ServiceSettings) -> None:
    """The life of the process."""
    begin_apart(settings)
    with received_file(pipe) as file:
        _limit(settings)
        answer_all(pipe, partial(_answer, file))


def _answer(
    file: BinaryIO, question: tuple[Callable[[BinaryIO], Any], dict[str, Any]]
) -> tuple[Any, Raised | None]:
    work, ids = question
    with log_context(**ids):
        try:
            return work(file), None
        except (GcvaeError, ServiceError, MemoryError) as error:
            return None, Raised.of(error)
        except Exception as error:  # libraries have many words for having got no memory
            return None, Raised.of(error if _has_room() else MemoryError())


def _has_room() -> bool:
    """Whether there is memory for more, beside all that the work held when it failed."""
    try:
        bytearray(_ROOM_BYTES)
    except MemoryError:
        return False
    return True


def _limit(settings: ServiceSettings) -> None:
    """Bound what is taken from now on: memory that is written to, processor time, core files."""
    seconds = settings.table_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _KILL_AFTER_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # others have no such limit, or do not keep it
        most = _data_bytes() + settings.table_memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _data_bytes() -> int:
    """What this process has of the memory that RLIMIT_DATA bounds."""
    *_, data, _ = Path("/proc/self/statm").read_text().split()
    return int(data) * os.sysconf("SC_PAGE_SIZE")
