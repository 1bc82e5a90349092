"""Polls of jobs: those that come at the same time share one read of the database.

Hundreds of clients poll. A thread and a query for each poll would cost three times what the rest
of its answer does. So reads have a distance: a poll that comes alone is answered at once, those
that come soon after it wait a moment for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from starlette.concurrency import run_in_threadpool

from catalog.errors import NotFoundError
from catalog.records import Job

Found = Mapping[str, Job]

DISTANCE_SECONDS = 0.02
"""From the beginning of a read to that of the next."""


class JobReads:
    """Reads jobs for one event loop. What is answered was read after it was asked for.

    Args:
        read_many: reads jobs by their ids; called in a thread.
    """

    def __init__(self, read_many: Callable[[Collection[str]], Found]) -> None:
        self._read_many = read_many
        self._asked: asyncio.Future[Found] | None = None
        self._ids: set[str] = set()
        self._reader: asyncio.Task[None] | None = None

    async def get(self, job_id: str, *, workspace: str) -> Job:
        """The job.

        Raises:
            NotFoundError: no such job in this workspace.
        """
        if self._asked is None:
            self._asked = asyncio.get_running_loop().create_future()
        self._ids.add(job_id)
        if self._reader is None:
            self._reader = asyncio.create_task(self._read())
        # Shielded: one who leaves takes nothing from those who asked with it.
        job = (await asyncio.shield(self._asked)).get(job_id)
        if job is None or job.workspace != workspace:
            raise NotFoundError("job", job_id)
        return job

    async def _read(self) -> None:
        """Answer, read by read, until nobody asks; whoever asks meanwhile is in the next read."""
        loop = asyncio.get_running_loop()
        while self._asked is not None:
            next_at = loop.time() + DISTANCE_SECONDS
            asked, ids = self._asked, self._ids
            self._asked, self._ids = None, set()
            try:
                asked.set_result(await run_in_threadpool(self._read_many, ids))
            except Exception as error:
                asked.set_exception(error)
                asked.exception()  # those who still wait get it; nobody is no mistake
            await asyncio.sleep(next_at - loop.time())
        self._reader = None
