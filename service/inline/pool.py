"""Inline work in processes of its own: it shares neither Python's lock nor a crash with the API.

Each has a pipe of its own: an answer that is streamed goes on in the process that began it, and one
that is killed takes no other's work with it. `runtime/processes.py` says how they are started.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from structlog.contextvars import get_contextvars

from runtime.processes import Process
from service.errors import PoolFullError, ProcessDiedError, SlowReaderError
from service.inline.process import (
    FORK_SERVER,
    Answer,
    Bench,
    Streamed,
    Work,
    close_stream,
    forget_model,
    next_chunk,
    open_stream,
    serve,
)
from service.settings import ServiceSettings

if TYPE_CHECKING:
    from service.metrics import Metrics

ResultT = TypeVar("ResultT")

_STARTED_SECONDS = 0.1
"""A process that was being started may be there by then; torch's import takes seconds."""

log = logging.getLogger("service")


@dataclass(frozen=True)
class Opened:
    """A streamed answer whose first chunk is drawn."""

    summary: dict[str, Any]
    chunks: AsyncIterator[bytes]


class InlinePool:
    """`inline_workers` processes; at most `inline_waiting` more pieces of work may wait for one.

    It belongs to one event loop. A process is started when there is work and no other is idle.
    """

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._processes = [
            InlineProcess(settings, metrics.process_died) for _ in range(settings.inline_workers)
        ]
        self.n_free = settings.inline_workers + settings.inline_waiting
        self._line: list[_Turn] = []
        self._submitted: set[asyncio.Task[Any]] = set()

    async def run(self, work: Callable[[Bench], ResultT]) -> ResultT:
        """What `work` returns.

        Raises:
            PoolFullError: every place is taken.
            ProcessDiedError: the process was killed at this work.
            Exception: whatever the work raises.
        """
        place = self._take_place()
        try:
            process = await self._reached(self._join())
        except BaseException:
            place.release()
            raise
        asked = self._begin(process, work)
        # The place is the work's, not the request's: a client that leaves does not end it.
        asked.add_done_callback(lambda _: place.release())
        result: ResultT = await asyncio.shield(asked)
        return result

    async def open(self, work: Callable[[Bench], Streamed]) -> Opened:
        """The chunks, each drawn when it is asked for; the first is there on return.

        One place is held until the last chunk is read. A reader so slow that `inline_seconds`
        pass loses the place and the rest of the answer: its chunks end with SlowReaderError.

        Raises:
            PoolFullError, ProcessDiedError: as `run`.
            Exception: whatever the first chunk raises.
        """
        stream = _Stream(self, self._take_place(), self._settings.inline_seconds)
        try:
            summary, first = await stream.begin(work)
        except BaseException:
            stream.end()
            raise
        return Opened(summary, stream.chunks(first))

    async def warm(self) -> None:
        """Start the first process before it is needed: torch takes seconds."""
        await asyncio.to_thread(self._processes[0].start)

    def forget(self, model_id: str) -> None:
        """Drop a deleted model."""
        for process in self._processes:
            if process.is_started:
                self.submit(process, partial(forget_model, model_id=model_id))

    def close(self) -> None:
        """End the processes. Nobody waits for what they may still do."""
        for process in self._processes:
            process.close()

    async def ask(self, process: InlineProcess, work: Work) -> Any:
        """What this process returns: it goes on with what it began."""
        await self._reached(self._join(process))
        return await asyncio.shield(self._begin(process, work))

    async def begin(self, work: Work) -> tuple[InlineProcess, asyncio.Task[Any]]:
        """The next process that is idle, at work."""
        process = await self._reached(self._join())
        return process, self._begin(process, work)

    def submit(self, process: InlineProcess, work: Work) -> None:
        """Have this process do something that nobody waits for."""
        turn = self._join(process)

        async def do() -> None:
            await self._begin(await self._reached(turn), work)

        submitted = asyncio.get_running_loop().create_task(do())
        self._submitted.add(submitted)
        submitted.add_done_callback(self._submitted.discard)
        submitted.add_done_callback(_retrieve)

    def _begin(self, process: InlineProcess, work: Work) -> asyncio.Task[Any]:
        """The work, in a process whose turn it is; it goes on where nobody waits any more."""

        async def do() -> Any:
            try:
                found = await process.answer(work)
            finally:
                process.is_busy = False
                self._deal()
            self._metrics.add(found.tally)
            if found.raised is not None:
                raise found.raised.error()
            return found.value

        task = asyncio.get_running_loop().create_task(do())
        task.add_done_callback(_retrieve)
        return task

    def _join(self, process: InlineProcess | None = None) -> _Turn:
        """A place in the line for this process, or for any: first come, first served."""
        turn = _Turn(process, asyncio.get_running_loop().create_future())
        self._line.append(turn)
        self._deal()
        return turn

    async def _reached(self, turn: _Turn) -> InlineProcess:
        """The process, as soon as it is idle."""
        try:
            return await turn.begun
        except asyncio.CancelledError:
            if turn in self._line:
                self._line.remove(turn)
            elif not turn.begun.cancelled():
                turn.begun.result().is_busy = False
                self._deal()
            raise

    def _deal(self) -> None:
        """Give each idle process the first in the line that it may serve; started ones first."""
        waiting = [turn for turn in self._line if not turn.begun.done()]  # the others have left
        for process in sorted(self._processes, key=lambda process: not process.is_started):
            fits = (turn for turn in waiting if turn.process in (None, process))
            if not process.is_busy and (turn := next(fits, None)) is not None:
                self._line.remove(turn)
                waiting.remove(turn)
                process.is_busy = True
                turn.begun.set_result(process)

    def _take_place(self) -> _Place:
        if self.n_free == 0:
            what = "all inline-work processes are busy and the queue of waiting requests is full"
            raise PoolFullError(what, self._settings.inline_waiting, "inline_waiting")
        self.n_free -= 1
        return _Place(self._give_back)

    def _give_back(self) -> None:
        self.n_free += 1


class InlineProcess:
    """One process, started when it is needed, and again when it has died.

    Attributes:
        is_busy: set by the pool from when it deals out the process until that has answered.
    """

    def __init__(self, settings: ServiceSettings, on_death: Callable[[], None]) -> None:
        self.is_busy = False
        self._settings = settings
        self._on_death = on_death
        self._is_closed = False
        self._starting = threading.Lock()
        self._asking = ThreadPoolExecutor(1, "inline")
        self._process: Process | None = None

    @property
    def is_started(self) -> bool:
        """Whether there is a process, as far as is known."""
        return self._process is not None

    def start(self) -> Process:
        """Start the process, unless it is. It waits for it: call it in a thread.

        Raises:
            ProcessDiedError: it died at its start.
        """
        with self._starting:
            if self._is_closed:
                raise RuntimeError("the pool of inline work is closed")
            if self._process is None:
                process = FORK_SERVER.fork(serve, self._settings)
                try:
                    process.ask(None)
                except EOFError as error:
                    process.close()
                    raise ProcessDiedError from error
                self._process = process
                if self._is_closed:  # meanwhile; whoever closed it did not wait
                    self._end()
                    raise RuntimeError("the pool of inline work is closed")
            return self._process

    async def answer(self, work: Work) -> Answer:
        """The process's answer.

        Raises:
            ProcessDiedError: the process died at it.
        """
        process = self._process
        if process is not None and not process.is_alive:
            self._bury(process)  # it was killed while it was idle: nobody loses anything
            process = None
        if process is None:
            process = await asyncio.to_thread(self.start)
        question = (work, get_contextvars())
        loop = asyncio.get_running_loop()
        try:
            answer: Answer = await loop.run_in_executor(self._asking, process.ask, question)
        except EOFError as error:
            self._bury(process)
            raise ProcessDiedError from error
        return answer

    def close(self) -> None:
        """End the process at once, for nobody waits for it any more.

        One that is just starting is ended by whoever starts it.
        """
        self._is_closed = True
        if self._starting.acquire(timeout=_STARTED_SECONDS):
            try:
                self._end()
            finally:
                self._starting.release()

    def _bury(self, process: Process) -> None:
        if self._process is process and not self._is_closed:
            log.error("a process of inline work died; the next work gets a fresh one")
            self._on_death()
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            if self._is_closed:
                self._asking.shutdown()  # whoever asks gets an EOFError
            self._process.close()
            self._process = None


@dataclass(frozen=True, eq=False)
class _Turn:
    """Someone in the line: `process` is None where any will do."""

    process: InlineProcess | None
    begun: asyncio.Future[InlineProcess]


class _Place:
    """A place in the pool. Releasing it twice is no error."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back = give_back
        self.is_released = False

    def release(self) -> None:
        """Give the place back."""
        if not self.is_released:
            self.is_released = True
            self._give_back()


class _Stream:
    """An answer in chunks. Its place is given back when it is read, left, or too slow."""

    def __init__(self, pool: InlinePool, place: _Place, limit_seconds: float) -> None:
        self._pool = pool
        self._place = place
        self._id = uuid.uuid4().hex
        self._process: InlineProcess | None = None
        self._is_read = False
        self._limit_seconds = limit_seconds
        self._timer = asyncio.get_running_loop().call_later(limit_seconds, self.end)

    async def begin(self, work: Callable[[Bench], Streamed]) -> tuple[dict[str, Any], bytes | None]:
        """The summary and the first chunk."""
        opening = partial(open_stream, stream_id=self._id, work=work)
        self._process, asked = await self._pool.begin(opening)
        opened: tuple[dict[str, Any], bytes | None] = await asyncio.shield(asked)
        return opened

    async def chunks(self, chunk: bytes | None) -> AsyncIterator[bytes]:
        """The first chunk, and all others."""
        assert self._process is not None, "it has begun"
        following = partial(next_chunk, stream_id=self._id)
        try:
            while chunk is not None:
                yield chunk
                if self._place.is_released:
                    raise SlowReaderError(self._limit_seconds)
                chunk = await self._pool.ask(self._process, following)
            self._is_read = True
        finally:
            self.end()

    def end(self) -> None:
        """Give the place back, and have the process forget the stream. Twice is no error."""
        self._timer.cancel()
        if not self._place.is_released:
            self._place.release()
            if self._process is not None and not self._is_read:
                self._pool.submit(self._process, partial(close_stream, stream_id=self._id))


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Mark what a task raised as seen: those who wait for it may be none."""
    if not task.cancelled():
        task.exception()
