"""Batched reads of jobs: clients that poll at the same time share one database query.

A thread and a query for each poll would take three quarters of its time. Reads begin at least
20 ms apart: a single poll is answered at once, and polls shortly after it share the next read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from starlette.concurrency import run_in_threadpool

from catalog.errors import NotFoundError
from catalog.records import Job

Found = Mapping[str, Job]

INTERVAL_SECONDS = 0.02
"""Minimum time between the starts of two reads."""


class JobReads:
    """Reads jobs in batches for the coroutines of one event loop.

    A job is read after `get` is called, so that its state is never older than the request.

    Args:
        read_many: Function that takes ids and returns the existing jobs by id; it runs in a thread.
    """

    def __init__(self, read_many: Callable[[Collection[str]], Found]) -> None:
        self._read_many = read_many
        self._pending: asyncio.Future[Found] | None = None
        self._ids: set[str] = set()
        self._reader: asyncio.Task[None] | None = None

    async def get(self, job_id: str, *, workspace: str) -> Job:
        """Returns the current state of a job.

        Raises:
            NotFoundError: The workspace contains no job with this id.
        """
        if self._pending is None:
            self._pending = asyncio.get_running_loop().create_future()
        self._ids.add(job_id)
        if self._reader is None:
            self._reader = asyncio.create_task(self._read())
        # Shielded, because a cancelled request must not cancel the read that others wait for.
        job = (await asyncio.shield(self._pending)).get(job_id)
        if job is None or job.workspace != workspace:
            raise NotFoundError("job", job_id)
        return job

    async def _read(self) -> None:
        """Reads jobs until no request is waiting; requests during a read wait for the next one."""
        loop = asyncio.get_running_loop()
        while self._pending is not None:
            next_at = loop.time() + INTERVAL_SECONDS
            pending, ids = self._pending, self._ids
            self._pending, self._ids = None, set()
            try:
                pending.set_result(await run_in_threadpool(self._read_many, ids))
            except Exception as error:
                pending.set_exception(error)
                pending.exception()  # otherwise asyncio logs it if no request is waiting
            await asyncio.sleep(next_at - loop.time())
        self._reader = None
