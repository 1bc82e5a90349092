"""Endpoints that read, list, follow, cancel and retry jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from catalog.dispatch.celery import send_soon
from catalog.errors import NotFoundError
from catalog.job_kinds import JobKind, TrainSpec
from catalog.records import Job, JobStatus
from service.access import Workspace, get_workspace
from service.bodies import JobBody, PageBody, job_body
from service.errors import QueueFullError
from service.http.etags import tagged_json
from service.http.pages import Cursor, Limit, page_body
from service.http.query_parameters import refuse_unknown_parameters
from service.quotas import require_storage, require_training_time
from service.resources import Resources, Shared, get_resources
from service.routes.privacy_ledgers import privacy_request

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

POLL_SECONDS = 1
"""Interval of polls that responses recommend, as Retry-After."""

_EVENT_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}


class _PollingRoute(APIRoute):
    """Fast route for `read_job`, which clients call often.

    It calls the dependencies of `read_job` directly. FastAPI's own dependency injection would take
    a third of the processor time. The OpenAPI document describes the function as usual.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns a handler that calls the dependencies and then the route's function."""

        async def poll(request: Request) -> Response:
            resources = await get_resources(request)
            workspace = await get_workspace(request)
            await refuse_unknown_parameters(request)
            job_id = request.path_params["job_id"]
            answer: Response = await self.endpoint(job_id, request, resources, workspace)
            return answer

        return poll


async def read_job(
    job_id: str, request: Request, resources: Shared, workspace: Workspace
) -> Response:
    """Read a job. For polling, the response has an ETag, and Retry-After until the job ends."""
    job = await resources.job_reads.get(job_id, workspace=workspace.name)
    headers = {} if job.status.is_final else {"Retry-After": str(POLL_SECONDS)}
    return tagged_json(request, job_body(job), headers)


router.add_api_route(
    "/{job_id}", read_job, response_model=JobBody, route_class_override=_PollingRoute
)


@router.get("")
def list_jobs(
    workspace: Workspace,
    limit: Limit = 50,
    cursor: Cursor = None,
    status: JobStatus | None = None,
    kind: JobKind | None = None,
    model_id: str | None = None,
) -> PageBody[JobBody]:
    """List the jobs of the workspace, newest first."""
    page = workspace.jobs.list(
        limit=limit, cursor=cursor, status=status, kind=kind, model_id=model_id
    )
    return page_body(page, job_body)


@router.get("/{job_id}/events", response_class=StreamingResponse, responses=_EVENT_STREAM)
async def follow_job(
    job_id: str,
    resources: Shared,
    workspace: Workspace,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Response:
    """Follow a job by server-sent events until it ends. If the client has already seen the end, the
    response is 204, which tells the client not to reconnect."""
    job = await resources.job_reads.get(job_id, workspace=workspace.name)
    seen = _seen_version(last_event_id, job)
    if job.status.is_final and seen == job.version:
        return Response(status_code=204)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        _follow(resources, job, seen), headers=headers, media_type="text/event-stream"
    )


@router.post("/{job_id}/cancel")
def cancel_job(job_id: str, workspace: Workspace) -> JobBody:
    """Cancel a job: a waiting job at once, a running job soon. A second call has no effect."""
    return job_body(workspace.jobs.request_cancel(job_id))


@router.post("/{job_id}/retry", status_code=202)
def retry_job(job_id: str, response: Response, resources: Shared, workspace: Workspace) -> JobBody:
    """Queue a failed or cancelled job again."""
    require_room(resources, workspace)
    job, privacy = workspace.jobs.get(job_id), None
    if job.kind is JobKind.TRAIN:
        require_training_time(resources, workspace)
        privacy = privacy_request(resources, TrainSpec.from_json(job.spec).training)
    job = workspace.jobs.retry(job_id, privacy)
    send_soon(resources.dispatcher, job, max(1, job.n_shards))
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return job_body(job)


def _seen_version(last_event_id: str | None, job: Job) -> int:
    """Returns the job version that a client has seen; 0 if its Last-Event-ID is missing or
    invalid."""
    if last_event_id is None or not last_event_id.isdecimal():
        return 0
    version = int(last_event_id)
    return version if version <= job.version else 0


async def _follow(resources: Resources, job: Job, seen: int) -> AsyncIterator[bytes]:
    """Yields a server-sent event for each change of the job, and in between comments that keep the
    connection open. Stops when the job ends or is deleted, or the service shuts down."""
    sent_at = time.monotonic()
    while not resources.closing.is_set():
        if job.version > seen:
            data = job_body(job).model_dump_json(by_alias=True)
            yield format_sse_event(data_str=data, event="job", id=str(job.version))
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


def require_room(resources: Resources, workspace: Workspace) -> None:
    """Checks that the workspace may queue another job.

    Raises:
        QueueFullError: Too many jobs of the workspace are waiting.
        QuotaError: The workspace has used up its storage.
    """
    require_storage(resources, workspace, 0)
    limit = resources.settings.max_queued_jobs
    n_queued = workspace.jobs.count([JobStatus.QUEUED])
    if n_queued >= limit:
        raise QueueFullError(f"{n_queued} jobs are waiting", limit, "max_queued_jobs")
