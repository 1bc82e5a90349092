"""A bounded pool of threads: reading tables neither blocks the event loop nor piles up."""

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
        if not self._places.acquire(blocking=False):
            what = (
                f"all threads for {self._name} are busy and the queue of waiting requests is full"
            )
            raise PoolFullError(what, self._waiting, self._waiting_setting)
        future = self._executor.submit(copy_context().run, work)  # its log lines say the request
        # The place is the thread's, not the request's: a client that leaves stops no thread.
        future.add_done_callback(lambda _: self._places.release())
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Let running work end and take no more."""
        self._executor.shutdown(wait=True, cancel_futures=True)
