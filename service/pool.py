"""A bounded pool for inline work: heavy requests neither block the event loop nor pile up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from service.errors import PoolFullError

ResultT = TypeVar("ResultT")


class WorkPool:
    """`workers` threads; at most `waiting` more pieces of work may wait for one.

    Args:
        name: what the pool does, for threads and errors.
        waiting_setting: the field of the settings that `waiting` came from.
    """

    def __init__(self, name: str, workers: int, waiting: int, waiting_setting: str) -> None:
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._places = threading.BoundedSemaphore(workers + waiting)
        self._name = name
        self._waiting = waiting
        self._waiting_setting = waiting_setting

    async def run(self, work: Callable[[], ResultT]) -> ResultT:
        """What `work` returns, computed in a thread of the pool.

        Raises:
            PoolFullError: every place is taken.
        """
        place = self._take_place()
        future = self._executor.submit(copy_context().run, work)  # its log lines say the request
        # The place is the thread's, not the request's: a client that leaves stops no thread.
        future.add_done_callback(lambda _: place.release())
        return await asyncio.wrap_future(future)

    async def open(self, blocks: Iterator[bytes], limit_seconds: float) -> AsyncIterator[bytes]:
        """The blocks, each computed in a thread of the pool; the first is ready on return.

        One place is held until the last block is read. A reader so slow that `limit_seconds`
        pass loses the place and the rest of the answer.

        Raises:
            PoolFullError: every place is taken.
            Exception: whatever the first block raises.
        """
        place = self._take_place()
        timer = asyncio.get_running_loop().call_later(limit_seconds, place.release)
        try:
            first = await self._next(blocks)
        except BaseException:
            timer.cancel()
            place.release()
            raise
        return self._rest(first, blocks, place, timer)

    def close(self) -> None:
        """Let running work end and take no more."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    async def _rest(
        self,
        block: bytes | None,
        blocks: Iterator[bytes],
        place: _Place,
        timer: asyncio.TimerHandle,
    ) -> AsyncIterator[bytes]:
        try:
            while block is not None:
                yield block
                if place.released:
                    raise TimeoutError("the reader took too long; the answer is cut off")
                block = await self._next(blocks)
        finally:
            timer.cancel()
            place.release()

    async def _next(self, blocks: Iterator[bytes]) -> bytes | None:
        return await asyncio.wrap_future(
            self._executor.submit(copy_context().run, next, blocks, None)
        )

    def _take_place(self) -> _Place:
        if not self._places.acquire(blocking=False):
            what = f"all threads for {self._name} are busy and as many requests wait as may"
            raise PoolFullError(what, self._waiting, self._waiting_setting)
        return _Place(self._places)


class _Place:
    """A place in the pool. Releasing it twice is no error."""

    def __init__(self, places: threading.BoundedSemaphore) -> None:
        self._places = places
        self._lock = threading.Lock()
        self.released = False

    def release(self) -> None:
        """Give the place back."""
        with self._lock:
            if not self.released:
                self.released = True
                self._places.release()
