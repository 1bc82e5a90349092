"""Code shared by the endpoints that score, impute or encode rows."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from catalog.job_kinds import JobKind
from catalog.object_keys import input_prefix
from catalog.records import Document, Model
from gcvae.errors import Problem
from gcvae.files.row_documents import rows_to_csv
from service.access import Workspace
from service.bodies import PRIORITY, ResultBody, RowsBody
from service.errors import RequestError
from service.http.downloads import attachment
from service.http.idempotency import IdempotencyKey, enqueue_once, fingerprint
from service.http.json_bodies import JSON_TYPE, is_json, validated
from service.http.negotiation import choose_format, form_or_file, query_parameter
from service.http.query_parameters import OF_DATABASES
from service.http.uploads import (
    ENCODING,
    UPLOAD_TYPES,
    Upload,
    received,
    refuse_in_query,
)
from service.ingestion import CheckedRows, check_rows, table_format
from service.inline.process import Streamed
from service.inline.synthesizers import require_table, schema_of
from service.reservations import reserved
from service.resources import Resources, Shared
from service.routes.jobs import require_room
from service.routes.results import enqueue, find_queued
from service.table_process import read_isolated

_FIELDS = {
    "file": {"type": "string", "format": "binary"},
    "encoding": {"type": "string", "description": ENCODING},
}
_FILE_TYPES = ("text/csv", "application/gzip", "application/vnd.apache.parquet")


def documented(body: type[RowsBody], of_databases: Sequence[str] | None = None) -> dict[str, Any]:
    """Returns OpenAPI members of an endpoint whose request contains rows, as JSON or as a table.

    Args:
        of_databases: Query parameters that the endpoint supports for a model of a database; None if
            it supports the same as for a model of a table.
    """
    rows = {"application/json": {"schema": body.model_json_schema()}}
    content = rows | form_or_file(_FIELDS, _FILE_TYPES)
    encoding = query_parameter("encoding", f"{ENCODING}; if the body is the table itself")
    described = {"requestBody": {"required": True, "content": content}, "parameters": [encoding]}
    return described | ({} if of_databases is None else {OF_DATABASES: [*of_databases]})


def given(**options: Any) -> dict[str, Any]:
    """Returns a dictionary of the keyword arguments that are not None."""
    return {name: option for name, option in options.items() if option is not None}


@dataclass(frozen=True)
class RowsRequest:
    """Parameters of a request to score, impute or encode rows, the same for all three.

    Attributes:
        key: Idempotency-Key header; None if it is missing.
        priority: Order among the waiting jobs of the workspace; higher is earlier.
    """

    model_id: str
    request: Request
    resources: Resources
    workspace: Workspace
    key: str | None
    priority: int


async def _rows_request(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    key: IdempotencyKey = None,
    priority: Annotated[int, Query(ge=-100, le=100, description=f"{PRIORITY}; only for jobs")] = 0,
) -> RowsRequest:
    return RowsRequest(model_id, request, resources, workspace, key, priority)


RowsCall = Annotated[RowsRequest, Depends(_rows_request)]


@dataclass(frozen=True)
class Rows:
    """Uploaded rows and the model that is to score, impute or encode them.

    Attributes:
        response_format: Response format, a key of `media_types`.
        media_types: Media types by response format.
        upload: File with the rows as a table.
        body_options: Options in a JSON body, without `rows`.
    """

    call: RowsRequest
    model: Model
    response_format: str
    media_types: Mapping[str, str]
    upload: Upload
    body_options: dict[str, Any]

    async def checked(self) -> CheckedRows:
        """Checks the rows against the model's schema, in a separate process. Returns their size,
        and the rows too if they are few enough to be answered without a job.

        Raises:
            TableError, UnknownColumnError: The rows do not fit the schema.
            TableLimitError, TooLargeError: There are too many rows or bytes, or a cell is too long.
        """
        resources, upload = self.call.resources, self.upload
        check = partial(
            check_rows,
            schema=schema_of(self.model),
            encoding=upload.encoding,
            settings=resources.settings,
            is_json=upload.is_json,
        )
        return await resources.tables.run(
            partial(read_isolated, check, upload.file, resources.settings)
        )

    async def answer(self, work: Callable[..., Streamed], filename: str | None) -> Response:
        """Returns a response that streams the result of a child process, without a job.

        Args:
            work: Function that runs in the child process. It is called with the arguments `model`
                and `response_format`, the model and the format of this request.
            filename: Name under which a browser saves the result; None to let it show the result.
        """
        made = partial(work, model=self.model, response_format=self.response_format)
        stream = await self.call.resources.inline.open(made)
        headers = {"Vary": "Accept"}
        if filename is not None:
            headers["Content-Disposition"] = attachment(filename)
        media_type = self.media_types[self.response_format]
        return StreamingResponse(stream.chunks, headers=headers, media_type=media_type)

    async def enqueue(
        self,
        kind: JobKind,
        options: Mapping[str, Any],
        *,
        fingerprinted: Iterable[object],
        shards: Sequence[range],
        estimate: Document | None = None,
    ) -> Response:
        """Queues a job for the rows and returns a 202 response, once for each Idempotency-Key.

        Args:
            options: Options of the job, except its table and response format.
            fingerprinted: JSON values of the options. A later request with the same key must have
                the same values, or it is refused.
            shards: Ranges of row numbers for several workers; empty if one worker does all.
            estimate: Estimated time and memory of the job; None if unknown.
        """
        call = self.call
        sha256 = await run_in_threadpool(self.upload.sha256)
        contents = (
            sha256,
            *fingerprinted,
            self.response_format,
            self.upload.encoding,
            call.priority,
        )
        return await enqueue_once(
            call.workspace,
            call.key,
            fingerprint(call.request, *contents),
            partial(self._enqueue, kind, options, shards, estimate),
            partial(find_queued, call.workspace),
        )

    def _enqueue(
        self,
        kind: JobKind,
        options: Mapping[str, Any],
        shards: Sequence[range],
        estimate: Document | None,
    ) -> ResultBody:
        """Stores the rows and queues the job. Returns the response body."""
        resources, workspace = self.call.resources, self.call.workspace
        require_room(resources, workspace)
        job_id = workspace.jobs.new_id()
        prefix = input_prefix(job_id)
        with reserved(resources, prefix):
            file_format = table_format(self.upload.file)
            published = resources.store.publish(f"{prefix}table", self.upload.chunks())
            table = {
                "table_key": published.key,
                "table_sha256": published.sha256,
                "table_format": file_format,
                "table_encoding": self.upload.encoding,
            }
            spec = kind.spec.from_json({**table, **options, "format": self.response_format})
            priority = self.call.priority
            return enqueue(
                *(resources, workspace, kind, self.model, spec),
                shards=shards,
                priority=priority,
                estimate=estimate,
                job_id=job_id,
            )


@asynccontextmanager
async def received_rows(
    call: RowsRequest,
    body_type: type[RowsBody],
    format: str | None,
    media_types: Mapping[str, str],
) -> AsyncIterator[Rows]:
    """Context manager that receives rows, as JSON or as a table, and finds the model for them.

    Args:
        body_type: Pydantic model of a JSON body.
        format: Query parameter `format`; None if it is missing.
        media_types: Media types by supported response format.

    Raises:
        NotAcceptableError, NotFoundError, ModelNotReadyError: The response format is not supported,
            or the model does not exist or is not ready.
        RequestValidationError: The JSON body is not valid, with a pointer to each error.
        RequestError: The body is not JSON, or specifies a schema.
        MediaTypeError, TooLargeError: The body has another media type, or is too long.
    """
    request, resources = call.request, call.resources
    response_format = choose_format(format, request.headers.get("Accept"), media_types)
    model = await run_in_threadpool(call.workspace.models.get, call.model_id)
    require_table(model, request.url.path.rpartition("/")[2])
    rows = partial(Rows, call, model, response_format, media_types)
    if is_json(request.headers.get("Content-Type")):
        refuse_in_query(request)
        body = await run_in_threadpool(validated, await request.body(), body_type)
        content = await run_in_threadpool(rows_to_csv, body.rows, schema_of(model))
        options = body.model_dump(exclude={"rows"})
        with tempfile.TemporaryFile(prefix="gcvae-upload-") as file:
            file.write(content)
            yield rows(Upload(file, None, None, is_json=True), options)
        return
    async with received(request, resources.settings, (JSON_TYPE, *UPLOAD_TYPES)) as upload:
        refuse_schema(upload)
        yield rows(upload, {})


def refuse_schema(upload: Upload) -> None:
    """Checks that an upload of rows specifies no schema, because the model's schema is used.

    Raises:
        RequestError: The upload specifies a schema.
    """
    if upload.schema is not None:
        message = "rows are read under the model's schema"
        raise RequestError(Problem(message, "/schema", expected="no schema"))
