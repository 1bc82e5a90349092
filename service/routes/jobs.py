"""Endpoints that list, follow, cancel and retry jobs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse

from catalog.dispatch.celery import send_soon
from catalog.job_kinds import JobKind, TrainSpec
from catalog.records import Job, JobStatus
from service.access import Workspace
from service.bodies import JobBody, PageBody, job_body
from service.errors import QueueFullError
from service.http.events import follow, seen_version
from service.http.pages import Cursor, Limit, page_body
from service.quotas import require_storage, require_training_time
from service.resources import Resources, Shared
from service.routes.privacy_ledgers import privacy_request

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

_EVENT_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}


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
    response is 204, which tells the client not to reconnect.
    """
    job = await resources.job_reads.get(job_id, workspace=workspace.name)
    seen = seen_version(last_event_id, job)
    if job.status.is_final and seen == job.version:
        return Response(status_code=204)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        follow(resources, job, seen), headers=headers, media_type="text/event-stream"
    )


@router.post("/{job_id}/cancel")
def cancel_job(job_id: str, workspace: Workspace) -> JobBody:
    """Cancel a job: a waiting one at once, a running one soon. A second call has no effect."""
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
    response.headers["Location"] = job_path(job)
    return job_body(job)


def job_path(job: Job) -> str:
    """Returns the URL path of a job."""
    return f"/v1/jobs/{job.id}"


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
