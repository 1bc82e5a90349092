"""Bounded thread pool for reading tables, which must not block the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from service.errors import PoolFullError

ResultT = TypeVar("ResultT")


class WorkPool:
    """Pool of threads that runs `workers` calls at once and lets at most `waiting` more calls wait.

    Args:
        name: What the threads do, such as "reading tables"; for thread names and errors.
        waiting_setting: Name of the setting that determines `waiting`, for errors.
    """

    def __init__(self, name: str, workers: int, waiting: int, waiting_setting: str) -> None:
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._slots = threading.BoundedSemaphore(workers + waiting)
        self._name = name
        self._waiting = waiting
        self._waiting_setting = waiting_setting

    async def run(self, work: Callable[[], ResultT]) -> ResultT:
        """Calls `work()` in a thread of the pool and returns its result.

        Raises:
            PoolFullError: All threads are busy, and `waiting` calls are waiting already.
            Exception: Any exception of `work`.
        """
        if not self._slots.acquire(blocking=False):
            what = (
                f"all threads for {self._name} are busy and the queue of waiting requests is full"
            )
            raise PoolFullError(what, self._waiting, self._waiting_setting)
        future = self._executor.submit(copy_context().run, work)  # for the request id in log lines
        # The thread counts as busy until it is done, also if the client disconnects.
        future.add_done_callback(lambda _: self._slots.release())
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Waits for running calls, cancels waiting ones, and refuses new ones."""
        self._executor.shutdown(wait=True, cancel_futures=True)
