"""Rows that a request brings, to be scored, completed or encoded under a model's schema."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from catalog.dispatch import send_soon
from catalog.places import input_prefix
from catalog.records import Document, JobKind, Model
from catalog.specs import TableSpec
from gcvae.errors import Problem
from gcvae.row_documents import rows_to_csv
from service.bodies import PRIORITY, ResultBody, RowsBody, result_body
from service.errors import RequestError
from service.jobs import require_room
from service.json_bodies import JSON_TYPE, is_json, read_json
from service.reservations import reserved
from service.resources import Resources
from service.results import content_path
from service.synthesizers import schema_of
from service.uploads import UPLOAD_TYPES, Upload, received, table_format

PriorityQuery = Annotated[
    int, Query(ge=-100, le=100, description=f"{PRIORITY}; of no effect without a job")
]

_TABLE = {"schema": {"type": "string", "format": "binary"}}
_FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": {"type": "string", "format": "binary"}},
}


def documented(body: type[RowsBody]) -> dict[str, Any]:
    """What OpenAPI says of the request: rows in JSON, or a table as a form or as the bare body."""
    content = {
        "application/json": {"schema": body.model_json_schema()},
        "multipart/form-data": {"schema": _FORM},
        "text/csv": _TABLE,
        "application/gzip": _TABLE,
        "application/vnd.apache.parquet": _TABLE,
    }
    return {"requestBody": {"required": True, "content": content}}


def told(**options: Any) -> dict[str, Any]:
    """The options of a query that it has: they win over those of a JSON body."""
    return {name: option for name, option in options.items() if option is not None}


@asynccontextmanager
async def received_rows(
    request: Request, resources: Resources, model: Model, body_type: type[RowsBody]
) -> AsyncIterator[tuple[Upload, dict[str, Any]]]:
    """The rows as a table in a file, and what a JSON body says beside them.

    Raises:
        RequestValidationError: the JSON body is none, with the place of each fault.
        RequestError: the body is no JSON; or a schema is sent along.
        MediaTypeError, TooLargeError: as `service.uploads.received`.
    """
    if is_json(request.headers.get("Content-Type")):
        body = await run_in_threadpool(_read_body, await request.body(), body_type)
        content = await run_in_threadpool(rows_to_csv, body.rows, schema_of(model))
        options = body.model_dump(exclude={"rows"})
        yield Upload(io.BytesIO(content), None, None, is_json=True), options
        return
    async with received(request, resources.settings, (JSON_TYPE, *UPLOAD_TYPES)) as upload:
        if upload.schema is not None:
            message = "rows are read under the model's schema"
            raise RequestError(Problem(message, "/schema", expected="no schema"))
        yield upload, {}


def _read_body(content: bytes, body_type: type[RowsBody]) -> RowsBody:
    try:
        return body_type.model_validate(read_json(content))
    except ValidationError as error:
        found = [{**item, "loc": ("body", *item["loc"])} for item in error.errors()]
        raise RequestValidationError(found) from error


def enqueue_rows(
    resources: Resources,
    kind: JobKind,
    model: Model,
    upload: Upload,
    make_spec: Callable[..., TableSpec],
    *,
    shards: Sequence[range] = (),
    priority: int,
    estimate: Document | None,
) -> ResultBody:
    """A queued job with its table in the store; its id is on its way.

    Args:
        make_spec: makes the job's spec of `table_key`, `table_sha256` and `table_format`.
        shards: runs of rows, for several workers.
        priority: among the waiting jobs of the workspace.
        estimate: what the job is likely to take.

    Raises:
        QueueFullError: too many jobs wait.
        ModelNotReadyError: the model is not ready (any more).
    """
    require_room(resources, model.workspace)
    catalog = resources.catalog
    job_id = catalog.jobs.new_id()
    prefix = input_prefix(job_id)
    with reserved(resources, prefix):
        file_format = table_format(upload.file)
        published = resources.store.publish(f"{prefix}table", upload.chunks())
        spec = make_spec(
            table_key=published.key, table_sha256=published.sha256, table_format=file_format
        )
        job = catalog.jobs.enqueue(
            kind,
            model_id=model.id,
            spec=spec.to_json(),
            job_id=job_id,
            shards=shards,
            priority=priority,
            estimate=estimate,
            workspace=model.workspace,
        )
    send_soon(resources.dispatcher, job)
    return result_body(job, None, content_path(job))
