"""Looks at jobs share reads, and each sees what was written before it was asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Any

import pytest

from catalog.errors import NotFoundError
from catalog.records import Job
from service.job_reads import JobReads
from tests.running_service import Running


class Slow:
    """Reads that take 20 ms and count themselves."""

    def __init__(self, read_many: Callable[[Collection[str]], dict[str, Job]]) -> None:
        self._read_many = read_many
        self.asked: list[set[str]] = []

    def __call__(self, ids: Collection[str]) -> dict[str, Job]:
        self.asked.append(set(ids))
        found = self._read_many(ids)
        time.sleep(0.02)
        return found


def test_those_who_ask_together_share_a_read(service: Running, model: dict[str, Any]) -> None:
    slow = Slow(service.catalog.all_jobs.get_many)
    job_id = model["job_id"]

    async def ask() -> list[Job]:
        reads = JobReads(slow)
        return await asyncio.gather(*(reads.get(job_id, workspace="default") for _ in range(100)))

    assert {job.id for job in asyncio.run(ask())} == {job_id}
    assert slow.asked == [{job_id}]


def test_whoever_asks_during_a_read_gets_a_later_one(
    service: Running, model: dict[str, Any]
) -> None:
    slow = Slow(service.catalog.all_jobs.get_many)
    job_id = model["job_id"]

    async def ask() -> None:
        reads = JobReads(slow)
        first = asyncio.create_task(reads.get(job_id, workspace="default"))
        await asyncio.sleep(0.005)
        with pytest.raises(NotFoundError):
            await reads.get("job_none", workspace="default")
        await first
        await reads.get(job_id, workspace="default")

    asyncio.run(ask())
    assert slow.asked == [{job_id}, {"job_none"}, {job_id}]


def test_a_job_of_another_workspace_is_not_found(service: Running, model: dict[str, Any]) -> None:
    reads = JobReads(service.catalog.all_jobs.get_many)
    with pytest.raises(NotFoundError):
        asyncio.run(reads.get(model["job_id"], workspace="others"))


def test_a_read_that_fails_fails_for_all_and_the_next_one_works(
    service: Running, model: dict[str, Any]
) -> None:
    answers = [OSError("away"), None]

    def read(ids: Collection[str]) -> dict[str, Job]:
        if (error := answers.pop(0)) is not None:
            raise error
        return service.catalog.all_jobs.get_many(ids)

    async def ask() -> None:
        reads = JobReads(read)
        both = [reads.get(model["job_id"], workspace="default") for _ in range(2)]
        assert [type(e) for e in await asyncio.gather(*both, return_exceptions=True)] == [
            OSError, OSError,
        ]  # fmt: skip
        assert (await reads.get(model["job_id"], workspace="default")).id == model["job_id"]

    asyncio.run(ask())


def test_one_who_leaves_takes_nothing_from_the_others(
    service: Running, model: dict[str, Any]
) -> None:
    slow = Slow(service.catalog.all_jobs.get_many)

    async def ask() -> Job:
        reads = JobReads(slow)
        leaves = asyncio.create_task(reads.get(model["job_id"], workspace="default"))
        stays = asyncio.create_task(reads.get(model["job_id"], workspace="default"))
        await asyncio.sleep(0.005)
        leaves.cancel()
        return await stays

    assert asyncio.run(ask()).id == model["job_id"]
