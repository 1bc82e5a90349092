"""Endpoints that read, download and delete the results of jobs, for all kinds of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter, Request, Response

from catalog.dispatch.celery import send_soon
from catalog.errors import ConflictError, NotFoundError
from catalog.job_kinds import JobKind, JobSpec
from catalog.records import DataKind, Document, Job, JobStatus, Model, Result, Scoring
from gcvae.errors import Problem, ScoringError
from gcvae.files.shards import SHARD_UNIT_ROWS
from gcvae.schema.suggestions import unknown_name
from gcvae.training.costs import Computation, cost
from service.access import Workspace
from service.bodies import ResultBody, result_body
from service.errors import RequestError
from service.http.body_limits import ARCHIVE_TYPE
from service.http.downloads import download, stored_part, stored_result
from service.http.etags import tagged_json
from service.http.negotiation import (
    SAMPLE_CONTENT,
    TABLE_CONTENT,
    TABLE_MEDIA_TYPES,
    query_parameter,
)
from service.reservations import collect_garbage
from service.resources import Resources, Shared
from service.routes.jobs import POLL_SECONDS

_ENDINGS = {media_type: ending for ending, media_type in TABLE_MEDIA_TYPES.items()} | {
    ARCHIVE_TYPE: "zip"
}


def enqueue(
    resources: Resources,
    workspace: Workspace,
    kind: JobKind,
    model: Model,
    spec: JobSpec,
    *,
    shards: Sequence[range],
    priority: int,
    estimate: Document | None,
    job_id: str | None = None,
    dataset_id: str | None = None,
) -> ResultBody:
    """Queues a job of a model and sends its id to the workers. Returns the response body.

    Args:
        spec: Specification of the job's work.
        shards: Ranges of row numbers for several workers; empty if one worker does all.
        priority: Order among the waiting jobs of the workspace; higher is earlier.
        estimate: Estimated time and memory, from the function `estimate`; None if unknown.
        job_id: Id of the job if its input is already stored under it; None to create an id.
        dataset_id: Dataset that the job reads; None for none.
    """
    job = workspace.jobs.enqueue(
        kind,
        model_id=model.id,
        spec=spec.to_json(),
        dataset_id=dataset_id,
        job_id=job_id,
        shards=shards,
        priority=priority,
        estimate=estimate,
    )
    send_soon(resources.dispatcher, job, max(1, len(shards)))
    return result_body(job, None, content_path(job))


def estimate(model: Model, computation: Computation, rows: int, passes: float = 1.0) -> Document:
    """Returns the estimated time and memory of a computation on `rows` rows with the model's
    columns.

    For a database, the number of columns is a mean over its tables, weighted by their numbers of
    rows. `passes` is the number of times that each row is processed.
    """
    if model.kind is DataKind.DATABASE:
        tables = (model.record or {})["tables"].values()
        n_cells = sum(table["rows"] * table["columns"] for table in tables)
        columns = round(n_cells / max(sum(table["rows"] for table in tables), 1))
    else:
        columns = len((model.schema or {"columns": []})["columns"])
    return cost(computation, rows, columns, passes).to_json()


def cut_rows(rows: int, shard_rows: int) -> list[range]:
    """Divides row numbers into ranges for several workers; returns [] if one range suffices.

    Each range but the last has `shard_rows` rows, rounded up to a multiple of `SHARD_UNIT_ROWS`.

    >>> cut_rows(20_000, 8_192)
    [range(0, 8192), range(8192, 16384), range(16384, 20000)]
    >>> cut_rows(8_192, 8_192)
    []
    """
    step = -(-shard_rows // SHARD_UNIT_ROWS) * SHARD_UNIT_ROWS
    if rows <= step:
        return []
    return [range(first, min(first + step, rows)) for first in range(0, rows, step)]


def find_queued(workspace: Workspace, job_id: str) -> ResultBody:
    """Returns the response body for a job that an earlier, equal request has queued."""
    job = workspace.jobs.get(job_id)
    return result_body(job, None, content_path(job))


def result_routes(router: APIRouter, kind: JobKind, has_tables: bool = False) -> None:
    """Adds endpoints to the router that read, download and delete the results of one kind of job.

    Args:
        has_tables: Whether a result may be a database, of which `?table=` downloads one table.
    """
    path = f"/v1/{kind.collection}"
    word = kind.value
    content = SAMPLE_CONTENT if has_tables else TABLE_CONTENT
    table_parameter = query_parameter("table", "for a database: only this table")

    @router.get(f"{path}/{{result_id}}", response_model=ResultBody, name=f"read_{word}")
    def read_result(result_id: str, request: Request, workspace: Workspace) -> Response:
        """Read a result: the status of its job and, once it exists, its size and checksum."""
        job, result = find_result(workspace, kind, result_id)
        headers = {} if job.status.is_final else {"Retry-After": str(POLL_SECONDS)}
        if result is not None:
            told = permitted_summary(workspace.models.get(result.model_id), result.summary)
            result = replace(result, summary=told)
        return tagged_json(request, result_body(job, result, content_path(job)), headers)

    @router.get(
        f"{path}/{{result_id}}/content",
        response_class=Response,
        responses={
            200: {"content": content},
            206: {"content": content, "description": "the requested range"},
        },
        name=f"download_{word}",
        openapi_extra={"parameters": [table_parameter]} if has_tables else None,
    )
    def download_result(
        result_id: str, request: Request, resources: Shared, workspace: Workspace
    ) -> Response:
        """Download a result, or a range of its bytes."""
        job, result = find_result(workspace, kind, result_id)
        if result is None:
            raise ConflictError(
                f"job {job.id} is {job.status}; its result is available once it has succeeded"
            )
        require_permitted(workspace.models.get(result.model_id), result)
        table = request.query_params.get("table")  # other results refuse this parameter
        if table is not None:
            return _download_table(request, resources, job, result, table)
        return download(
            request,
            stored_result(resources.store, result),
            media_type=result.media_type,
            filename=f"{result.id}.{_ENDINGS.get(result.media_type.split(';')[0], 'bin')}",
        )

    @router.delete(f"{path}/{{result_id}}", status_code=204, name=f"delete_{word}")
    def delete_result(result_id: str, resources: Shared, workspace: Workspace) -> None:
        """Delete a result. Before it exists, cancel its job instead."""
        job, result = find_result(workspace, kind, result_id)
        if result is None:
            raise ConflictError(f"job {job.id} is {job.status}; it has no result to delete")
        collect_garbage(resources, workspace.results.delete(result_id))


def _download_table(
    request: Request, resources: Resources, job: Job, result: Result, name: str
) -> Response:
    """Returns a response with one table of a generated or completed database."""
    tables = result.summary.get("tables", {})
    if not tables:
        message = "the result is a single table"
        raise RequestError(Problem(message, "?table", expected="no such parameter"))
    if name not in tables:
        raise RequestError(unknown_name(f"table is {name!r}", name, [*tables], pointer="?table"))
    location = (tables[name][member] for member in ("offset", "size_bytes", "sha256"))
    file_format = job.spec["format"]
    return download(
        request,
        stored_part(resources.store, result.object_key, *location),
        media_type=TABLE_MEDIA_TYPES[file_format],
        filename=f"{name}.{file_format}",
    )


LIKELIHOODS = ("log_likelihood", "mean_log_likelihood", "standard_error", "probability", "density")
"""Members of a result's summary that restricted scoring hides: log-likelihoods of rows and
probabilities of conditions."""


def permitted_summary(model: Model, summary: Document) -> Document:
    """Returns a result's summary without the members that the model's scoring forbids.

    `model.scoring` limits which scores a model gives. Unless it is `full`, log-likelihoods of rows
    and probabilities of conditions are left out.

    >>> from types import SimpleNamespace
    >>> permitted_summary(SimpleNamespace(scoring="off"), {"rows": 3, "probability": 0.25})
    {'rows': 3}
    """
    if model.scoring == Scoring.FULL:
        return summary
    return {name: value for name, value in summary.items() if name not in LIKELIHOODS}


def require_permitted(model: Model, result: Result) -> None:
    """Checks that a result contains only scores that the model's current scoring permits.

    Raises:
        ScoringError: The result contains scores made before the scoring was restricted.
    """
    if not result.kind.spec.contains_scores or model.scoring == Scoring.FULL:
        return
    if model.scoring == Scoring.OFF or "log_likelihood" in result.summary:
        message = (
            "these scores were made before the scoring of the model was restricted to "
            f"{model.scoring.value!r}"
        )
        expected = "a new scoring request"
        raise ScoringError(Problem(message, expected=expected))


def find_result(workspace: Workspace, kind: JobKind, result_id: str) -> tuple[Job, Result | None]:
    """Returns (job, result); the result is None until the job has made it.

    Raises:
        NotFoundError: There is no such job of this kind, or its result was deleted.
    """
    job = workspace.jobs.find_by_result(result_id)
    if job.kind != kind:
        raise NotFoundError(kind.value, result_id)
    try:
        return job, workspace.results.get(result_id)
    except NotFoundError:
        if job.status == JobStatus.SUCCEEDED:  # it was deleted
            raise NotFoundError(kind.value, result_id) from None
        return job, None


def content_path(job: Job) -> str:
    """Returns the URL path from which the result of a job can be downloaded."""
    return f"/v1/{job.kind.collection}/{job.result_id}/content"
