"""A job's progress as server-sent events, resumable: an event's id is the job's version."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from catalog.errors import NotFoundError
from catalog.records import Job
from service.bodies import job_body
from service.resources import Resources


def seen_version(last_event_id: str | None, job: Job) -> int:
    """The version that the reader has seen; 0 where it names none that this job had.

    A snapshot stands for all before it, so a reader who resumes misses nothing but what is old.
    """
    if last_event_id is None or not last_event_id.isdecimal():
        return 0
    version = int(last_event_id)
    return version if version <= job.version else 0


async def follow(resources: Resources, job: Job, seen: int) -> AsyncIterator[bytes]:
    """An event for each change of the job that can be seen, until it is over or deleted."""
    sent_at = time.monotonic()
    while not resources.closing.is_set():
        if job.version > seen:
            yield format_event(job)
            seen, sent_at = job.version, time.monotonic()
        if job.status.is_final:
            return
        if time.monotonic() - sent_at >= resources.settings.event_ping_seconds:
            yield KEEPALIVE_COMMENT
            sent_at = time.monotonic()
        await asyncio.sleep(resources.settings.event_interval_seconds)
        try:
            job = await resources.job_reads.get(job.id, workspace=job.workspace)
        except NotFoundError:
            return


def format_event(job: Job) -> bytes:
    """The job's present state as one event named `job`.

    How far to trust its estimate stands in its record: an event need not say it again.
    """
    said_once = {"estimate": {"accuracy"}}
    data = job_body(job).model_dump_json(by_alias=True, exclude=said_once)
    return format_sse_event(data_str=data, event="job", id=str(job.version))
