"""Server-sent events that report a job's progress.

The id of an event is the version of the job's record, so that clients can resume.
"""

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
    """Returns the job version that a client has seen; 0 if its Last-Event-ID is missing or invalid.

    An event contains the complete job, so a client that resumes needs only the newest version.
    """
    if last_event_id is None or not last_event_id.isdecimal():
        return 0
    version = int(last_event_id)
    return version if version <= job.version else 0


async def follow(resources: Resources, job: Job, seen: int) -> AsyncIterator[bytes]:
    """Yields the bytes of a server-sent event for each change of the job, and of comments that keep
    the connection open, until the job ends or is deleted.

    Args:
        seen: Version of the job that the client knows; 0 for none.
    """
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
    """Returns a server-sent event `job` whose data is the job's current state as JSON.

    The sentence `estimate.accuracy` is left out, because it does not change.
    """
    said_once = {"estimate": {"accuracy"}}
    data = job_body(job).model_dump_json(by_alias=True, exclude=said_once)
    return format_sse_event(data_str=data, event="job", id=str(job.version))
