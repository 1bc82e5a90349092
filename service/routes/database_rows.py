"""Requests to score or impute all tables of a database. A job does the work."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from fastapi import Response

from catalog.job_kinds import JobKind
from catalog.records import Model
from gcvae.errors import Problem
from service.database_samples import drawn_tables
from service.databases import check_tables_of_model
from service.errors import NotOfferedError
from service.http.json_bodies import is_json
from service.http.negotiation import choose_format
from service.http.uploads import DATASET_TYPES, received
from service.inline.synthesizers import require_ready, unsupported_for_databases
from service.routes.row_requests import Rows, RowsRequest, refuse_schema
from service.table_process import read_isolated


async def enqueue_database(
    call: RowsRequest,
    model: Model,
    kind: JobKind,
    options: Mapping[str, Any],
    query: Collection[str],
    offered: tuple[str, ...],
    format: str | None,
    media_types: Mapping[str, str],
) -> Response:
    """Receives the tables of a database, queues a job for them and returns a 202 response.

    Args:
        call: The request and its model id.
        model: Model of the database.
        kind: Kind of the job: scores or imputations.
        options: Options of the job, except tables and format.
        query: Names of the options that the request has as query parameters.
        offered: Names of the options that are supported for databases.
        format: Query parameter `format`; None if it is missing.
        media_types: Media types by supported format of the result.

    Raises:
        NotOfferedError: The body is JSON, or an option is not supported for databases.
        TableError: The body does not contain the model's tables.
        TableLimitError, TooLargeError: The tables exceed a limit on their size.
    """
    resources, settings = call.resources, call.resources.settings
    response_format = choose_format(format, call.request.headers.get("Accept"), media_types)
    require_ready(model)
    if is_json(call.request.headers.get("Content-Type")):
        message = "the body is JSON; a database is sent as its tables"
        raise unsupported_for_databases(
            message, expected="a ZIP file of its tables, or several files"
        )
    for name in query:
        if name not in offered:
            message = f"{name} is an option of the {kind.collection} of single tables"
            problem = Problem(message, f"?{name}", expected=" and ".join(offered))
            raise NotOfferedError(problem, offered)
    async with received(call.request, settings, DATASET_TYPES, settings.max_tables) as upload:
        refuse_schema(upload)
        check = partial(
            check_tables_of_model,
            tables=drawn_tables(model),
            schema=model.schema or {},
            encoding=upload.encoding,
            settings=settings,
        )
        await resources.tables.run(partial(read_isolated, check, upload.file, settings))
        rows = Rows(call, model, response_format, media_types, upload, {})
        return await rows.enqueue(kind, options, fingerprinted=options.values(), shards=())
