"""Results: the tables that jobs on a model made. One set of routes for all."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from catalog.errors import NotFoundError
from catalog.records import Job, JobKind, JobStatus, Result
from catalog.results import Results
from service.access import Workspace
from service.bodies import ResultBody, result_body
from service.downloads import download, stored_table
from service.errors import StateError
from service.etags import tagged_json
from service.looks import POLL_SECONDS
from service.negotiation import TABLE_MEDIA_TYPES
from service.reservations import sweep
from service.resources import Resources, Shared

_PLACES = {
    JobKind.SAMPLE: "samples",
    JobKind.SCORE: "scores",
    JobKind.IMPUTE: "imputations",
    JobKind.ENCODE: "encodings",
}
_ENDINGS = {media_type: ending for ending, media_type in TABLE_MEDIA_TYPES.items()}
_TABLE = {"schema": {"type": "string", "format": "binary"}}


def find_queued(resources: Resources, workspace: str, job_id: str) -> ResultBody:
    """What the job makes, as the answer to the request that queued it says."""
    job = resources.catalog.jobs.get(job_id, workspace=workspace)
    return result_body(job, None, content_path(job))


def result_routes(router: APIRouter, kind: JobKind) -> None:
    """Add the routes of one kind of result."""
    place = f"/v1/{_PLACES[kind]}"
    word = kind.value

    @router.get(f"{place}/{{result_id}}", response_model=ResultBody, name=f"read_{word}")
    def read_result(
        result_id: str, request: Request, resources: Shared, workspace: Workspace
    ) -> Response:
        """Read what became of the job: the table's size and checksum, once it is there."""
        job, result = find_result(resources, kind, result_id, workspace)
        headers = {} if job.status.is_final else {"Retry-After": str(POLL_SECONDS)}
        return tagged_json(request, result_body(job, result, content_path(job)), headers)

    @router.get(
        f"{place}/{{result_id}}/content",
        response_class=Response,
        responses={
            200: {"content": dict.fromkeys(_ENDINGS, _TABLE)},
            206: {"content": dict.fromkeys(_ENDINGS, _TABLE), "description": "the range asked"},
        },
        name=f"download_{word}",
    )
    def download_result(
        result_id: str, request: Request, resources: Shared, workspace: Workspace
    ) -> Response:
        """Download the table, or a range of its bytes where a transfer broke off."""
        job, result = find_result(resources, kind, result_id, workspace)
        if result is None:
            raise StateError(f"job {job.id} is {job.status}; the table comes when it succeeded")
        return download(
            request,
            stored_table(resources.store, result),
            media_type=result.media_type,
            filename=f"{result.id}.{_ENDINGS.get(result.media_type.split(';')[0], 'bin')}",
        )

    @router.delete(f"{place}/{{result_id}}", status_code=204, name=f"delete_{word}")
    def delete_result(result_id: str, resources: Shared, workspace: Workspace) -> None:
        """Delete the table. While there is none it is the job that can be cancelled."""
        job, result = find_result(resources, kind, result_id, workspace)
        if result is None:
            raise StateError(f"job {job.id} is {job.status}; it has made no table to be deleted")
        sweep(resources, _gateway(resources, kind).delete(result_id, workspace=workspace))


def find_result(
    resources: Resources, kind: JobKind, result_id: str, workspace: str
) -> tuple[Job, Result | None]:
    """The job that makes the result, and the result where it is there.

    Raises:
        NotFoundError: no job makes or made it, or it was deleted.
    """
    job = resources.catalog.jobs.find_by_result(result_id, workspace=workspace)
    if job.kind != kind:
        raise NotFoundError(kind.value, result_id)
    try:
        return job, _gateway(resources, kind).get(result_id, workspace=workspace)
    except NotFoundError:
        if job.status == JobStatus.SUCCEEDED:  # it was there and is deleted
            raise
        return job, None


def content_path(job: Job) -> str:
    """Where the table that a job makes is downloaded."""
    return f"/v1/{_PLACES[job.kind]}/{job.result_id}/content"


def _gateway(resources: Resources, kind: JobKind) -> Results:
    catalog = resources.catalog
    gateways = {
        JobKind.SAMPLE: catalog.samples,
        JobKind.SCORE: catalog.scores,
        JobKind.IMPUTE: catalog.imputations,
        JobKind.ENCODE: catalog.encodings,
    }
    return gateways[kind]
