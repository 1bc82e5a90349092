"""Pool of child processes that run models, for requests that are answered at once, without a job.

Child processes do not hold the API's global interpreter lock, and their crashes do not end the API.
Each process has its own pipe, so that killing it ends only its own work. One process makes all
chunks of a streamed response. `runtime/processes.py` describes how processes are started.
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
    InlineContext,
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
"""Seconds that `close` waits for a process that is being started."""

log = logging.getLogger("service")


@dataclass(frozen=True)
class StartedStream:
    """A streamed response whose first chunk is ready.

    Attributes:
        summary: Facts for the response headers, such as the probability of the conditions that
            generated rows have to satisfy.
        chunks: All chunks, the first included.
    """

    summary: dict[str, Any]
    chunks: AsyncIterator[bytes]


class InlinePool:
    """Pool of child processes that run models.

    There are at most `inline_workers` processes, for which at most `inline_waiting` requests wait.
    A process is started when work arrives and none is idle. For use in one event loop only.

    Attributes:
        n_free: Number of further requests that the pool accepts.
    """

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._processes = [
            InlineProcess(settings, metrics.process_died) for _ in range(settings.inline_workers)
        ]
        self.n_free = settings.inline_workers + settings.inline_waiting
        self._waiters: list[_Waiter] = []
        self._submitted: set[asyncio.Task[Any]] = set()

    async def run(self, work: Callable[[InlineContext], ResultT]) -> ResultT:
        """Calls `work(context)` in a child process and returns its result.

        Raises:
            PoolFullError: All processes are busy, and too many requests are waiting.
            ProcessDiedError: The process was killed during this work.
            Exception: Any exception of `work`.
        """
        self.count_request()
        try:
            process = await self._assigned_process(self._wait_in_queue())
        except BaseException:
            self.n_free += 1
            raise
        task = self._begin(process, work)
        # The request counts in the pool until the work is done, also if the client disconnects.
        task.add_done_callback(self._free)
        result: ResultT = await asyncio.shield(task)
        return result

    async def open(self, work: Callable[[InlineContext], Streamed]) -> StartedStream:
        """Calls `work` in a child process to start a stream of chunks. Waits for the first chunk.

        Each later chunk is made when the caller asks for it. The stream counts as a request in the
        pool until its last chunk is read. After `inline_seconds` the stream is closed, and
        reading it raises SlowReaderError.

        Raises:
            PoolFullError: All processes are busy, and too many requests are waiting.
            ProcessDiedError: The process was killed during this work.
            Exception: Any exception of `work` or of making the first chunk.
        """
        self.count_request()
        stream = _Stream(self, self._settings.inline_seconds)
        try:
            summary, first = await stream.begin(work)
        except BaseException:
            stream.end()
            raise
        return StartedStream(summary, stream.chunks(first))

    async def warm(self) -> None:
        """Starts the first process before it is needed, because importing torch takes seconds."""
        await asyncio.to_thread(self._processes[0].start)

    def forget(self, model_id: str) -> None:
        """Removes a deleted model from the memory of all processes."""
        for process in self._processes:
            if process.is_started:
                self.submit(process, partial(forget_model, model_id=model_id))

    def close(self) -> None:
        """Ends all processes without waiting for their work."""
        for process in self._processes:
            process.close()

    async def ask(self, process: InlineProcess, work: Work) -> Any:
        """Waits until `process` is idle, calls `work` in it and returns the result."""
        await self._assigned_process(self._wait_in_queue(process))
        return await asyncio.shield(self._begin(process, work))

    async def begin(self, work: Work) -> tuple[InlineProcess, asyncio.Task[Any]]:
        """Starts `work` in the next idle process. Returns (process, task with the result)."""
        process = await self._assigned_process(self._wait_in_queue())
        return process, self._begin(process, work)

    def submit(self, process: InlineProcess, work: Work) -> None:
        """Lets `process` call `work` when it is next idle. Returns at once, without a result."""
        waiter = self._wait_in_queue(process)

        async def do() -> None:
            await self._begin(await self._assigned_process(waiter), work)

        submitted = asyncio.get_running_loop().create_task(do())
        self._submitted.add(submitted)
        submitted.add_done_callback(self._submitted.discard)
        submitted.add_done_callback(_retrieve)

    def _begin(self, process: InlineProcess, work: Work) -> asyncio.Task[Any]:
        """Returns a task that calls `work` in `process`, also after the caller is cancelled."""

        async def do() -> Any:
            try:
                found = await process.answer(work)
            finally:
                process.is_busy = False
                self._assign_idle()
            self._metrics.add(found.tally)
            if found.raised is not None:
                raise found.raised.error()
            return found.value

        task = asyncio.get_running_loop().create_task(do())
        task.add_done_callback(_retrieve)
        return task

    def _wait_in_queue(self, process: InlineProcess | None = None) -> _Waiter:
        waiter = _Waiter(process, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        self._assign_idle()
        return waiter

    async def _assigned_process(self, waiter: _Waiter) -> InlineProcess:
        try:
            return await waiter.assigned
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif not waiter.assigned.cancelled():
                waiter.assigned.result().is_busy = False
                self._assign_idle()
            raise

    def _assign_idle(self) -> None:
        """Assigns each idle process to the first request in the queue that can use it. Processes
        that run are assigned first, so that no new one is started while another is idle."""
        waiting = [waiter for waiter in self._waiters if not waiter.assigned.done()]
        for process in sorted(self._processes, key=lambda process: not process.is_started):
            fits = (waiter for waiter in waiting if waiter.process in (None, process))
            if not process.is_busy and (waiter := next(fits, None)) is not None:
                self._waiters.remove(waiter)
                waiting.remove(waiter)
                process.is_busy = True
                waiter.assigned.set_result(process)

    def _free(self, _task: asyncio.Task[Any]) -> None:
        self.n_free += 1

    def count_request(self) -> None:
        """Subtracts 1 from `n_free`. The caller adds 1 again when its request has ended.

        Raises:
            PoolFullError: All processes are busy, and too many requests are waiting.
        """
        if self.n_free == 0:
            what = "all inline-work processes are busy and the queue of waiting requests is full"
            raise PoolFullError(what, self._settings.inline_waiting, "inline_waiting")
        self.n_free -= 1


class InlineProcess:
    """A child process that is started when it is needed, and again after it has died.

    Args:
        on_death: Function that is called when the process has died.

    Attributes:
        is_busy: Whether the pool has assigned the process to a request.
    """

    def __init__(self, settings: ServiceSettings, on_death: Callable[[], None]) -> None:
        self.is_busy = False
        self._settings = settings
        self._on_death = on_death
        self._is_closed = False
        self._starting = threading.Lock()
        self._sender = ThreadPoolExecutor(1, "inline")
        self._process: Process | None = None

    @property
    def is_started(self) -> bool:
        """Whether the process was started; also True if it has died unnoticed since then."""
        return self._process is not None

    def start(self) -> Process:
        """Starts the process unless it is running, and returns it. Blocks, so call it in a thread.

        Raises:
            ProcessDiedError: The process died while starting.
            RuntimeError: The pool is closed.
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
                if self._is_closed:  # closed during the start
                    self._end()
                    raise RuntimeError("the pool of inline work is closed")
            return self._process

    async def answer(self, work: Work) -> Answer:
        """Calls `work` in the process, which is started if necessary, and returns its answer.

        Raises:
            ProcessDiedError: The process died during the work.
        """
        process = self._process
        if process is not None and not process.is_alive:
            self._discard_dead(process)  # killed while idle, without work
            process = None
        if process is None:
            process = await asyncio.to_thread(self.start)
        question = (work, get_contextvars())
        loop = asyncio.get_running_loop()
        try:
            answer: Answer = await loop.run_in_executor(self._sender, process.ask, question)
        except EOFError as error:
            self._discard_dead(process)
            raise ProcessDiedError from error
        return answer

    def close(self) -> None:
        """Ends the process at once. If a thread is still starting it, that thread ends it."""
        self._is_closed = True
        if self._starting.acquire(timeout=_STARTED_SECONDS):
            try:
                self._end()
            finally:
                self._starting.release()

    def _discard_dead(self, process: Process) -> None:
        if self._process is process and not self._is_closed:
            log.error("a process of inline work died; the next work gets a fresh one")
            self._on_death()
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            if self._is_closed:
                self._sender.shutdown()  # pending calls get an EOFError
            self._process.close()
            self._process = None


@dataclass(frozen=True, eq=False)
class _Waiter:
    """A queued request for a process; `process` is None if any process can be assigned."""

    process: InlineProcess | None
    assigned: asyncio.Future[InlineProcess]


class _Stream:
    """A streamed response, which counts in the pool until it is read, closed or too slow."""

    def __init__(self, pool: InlinePool, limit_seconds: float) -> None:
        self._pool = pool
        self._is_over = False
        self._id = uuid.uuid4().hex
        self._process: InlineProcess | None = None
        self._is_read = False
        self._limit_seconds = limit_seconds
        self._timer = asyncio.get_running_loop().call_later(limit_seconds, self.end)

    async def begin(
        self, work: Callable[[InlineContext], Streamed]
    ) -> tuple[dict[str, Any], bytes | None]:
        """Starts the stream. Returns (summary, first chunk or None if there are no chunks)."""
        opening = partial(open_stream, stream_id=self._id, work=work)
        self._process, task = await self._pool.begin(opening)
        begun: tuple[dict[str, Any], bytes | None] = await asyncio.shield(task)
        return begun

    async def chunks(self, chunk: bytes | None) -> AsyncIterator[bytes]:
        """Yields all chunks. `chunk` is the first one, from `begin`; None if there are none.

        Raises:
            SlowReaderError: The stream has taken longer than its limit.
        """
        assert self._process is not None, "it has begun"
        following = partial(next_chunk, stream_id=self._id)
        try:
            while chunk is not None:
                yield chunk
                if self._is_over:
                    raise SlowReaderError(self._limit_seconds)
                chunk = await self._pool.ask(self._process, following)
            self._is_read = True
        finally:
            self.end()

    def end(self) -> None:
        """Closes the stream, so that the pool accepts another request. May be called repeatedly."""
        self._timer.cancel()
        if not self._is_over:
            self._is_over = True
            self._pool.n_free += 1
            if self._process is not None and not self._is_read:
                self._pool.submit(self._process, partial(close_stream, stream_id=self._id))


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieves the exception of a task that nobody may await, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
