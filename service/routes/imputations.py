"""Endpoint that imputes missing cells of rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from catalog.job_kinds import JobKind
from catalog.records import DataKind
from gcvae.errors import InputError, Problem, UnknownColumnError
from gcvae.numerics.seeds import MAX_SEED
from gcvae.sampling.filled_columns import filled_columns, read_names
from gcvae.schema.columns import DRAW_COLUMN, TableSchema
from service.bodies import ResultBody, RowsBody, Seed, Whole
from service.errors import RequestError, TableLimitError
from service.http.negotiation import TABLE_CONTENT
from service.http.negotiation import TABLE_MEDIA_TYPES as MEDIA_TYPES
from service.ingestion import check_size
from service.inline.synthesizers import schema_of
from service.inline.work import complete_rows
from service.routes.database_rows import enqueue_database
from service.routes.results import cut_rows, result_routes
from service.routes.row_requests import RowsCall, documented, given, received_rows
from service.settings import ServiceSettings

router = APIRouter(tags=["imputations"])

_NAMES = 'names separated by commas, a name with a comma in quotes: a,"b, c"'

_IMPUTED_COLUMNS = "columns to impute; missing cells of other columns are kept and integrated out"
_KEPT_MISSING = (
    "columns whose missing cells are meaningful: they are kept, and the other columns are imputed"
    " given that they are missing; default: the columns with `missing.is_value` in the schema"
)


class NewImputationBody(RowsBody):
    """Rows whose missing cells (null) are to be imputed, and options."""

    draws: Whole = Field(1, ge=1)
    seed: Seed = 0
    columns: list[str] | None = Field(None, min_length=1, description=_IMPUTED_COLUMNS)
    keep_missing: list[str] | None = Field(None, description=_KEPT_MISSING)


@router.post(
    "/v1/models/{model_id}/imputations",
    response_class=Response,
    responses={
        200: {"content": TABLE_CONTENT},
        202: {"model": ResultBody},
    },
    openapi_extra=documented(NewImputationBody, ("seed", "format", "encoding", "priority")),
)
async def impute_rows(
    call: RowsCall,
    draws: Annotated[int | None, Query(ge=1, description="number of imputations per row")] = None,
    seed: Annotated[int | None, Query(ge=0, le=MAX_SEED)] = None,
    columns: Annotated[str | None, Query(description=f"{_IMPUTED_COLUMNS}; {_NAMES}")] = None,
    keep_missing: Annotated[str | None, Query(description=f"{_KEPT_MISSING}; {_NAMES}")] = None,
    format: Annotated[str | None, Query(description="csv, parquet, json or jsonl")] = None,
) -> Response:
    """Impute missing cells of rows (JSON, CSV or Parquet) by samples from p(missing | known), in
    all columns or in `columns`. Known cells do not change. If rows times `draws` exceeds
    `GCVAE_MAX_INLINE_SCORE_ROWS`, the response is 202 and a job.

    For a model of a database, send its tables (a ZIP file, or several files in a form); `seed` is
    the only option, and `format` is csv or parquet. The response is 202 and a job, whose result is
    a ZIP file of the completed tables.
    """
    settings = call.resources.settings
    model = await run_in_threadpool(call.workspace.models.get, call.model_id)
    if model.kind is DataKind.DATABASE:
        query = given(draws=draws, columns=columns, keep_missing=keep_missing)
        options = {"draws": 1, "seed": seed or 0}
        response_format = format or "csv"
        return await enqueue_database(
            call, model, JobKind.IMPUTE, options, query, ("seed",), response_format, _OF_DATABASE
        )
    async with received_rows(call, NewImputationBody, format, MEDIA_TYPES) as rows:
        query = given(draws=draws, seed=seed) | _named(columns=columns, keep_missing=keep_missing)
        options = {"draws": 1, "seed": 0} | rows.body_options | query
        _check_options(options, schema_of(rows.model), settings, in_query=query)
        found = await rows.checked()
        n_rows = found.rows * options["draws"]
        check_size(n_rows, found.columns, settings)
        if found.frame is not None and n_rows <= settings.max_inline_score_rows:
            work = partial(complete_rows, frame=found.frame, options=options)
            return await rows.answer(work, f"{rows.model.name}-completed.{rows.response_format}")

        shard_rows = max(1, settings.score_shard_rows // options["draws"])
        return await rows.enqueue(
            JobKind.IMPUTE,
            options,
            fingerprinted=sorted(options.items()),
            shards=cut_rows(found.rows, shard_rows),
        )


_OF_DATABASE = {name: MEDIA_TYPES[name] for name in ("csv", "parquet")}
"""Formats of the tables of a completed database."""

result_routes(router, JobKind.IMPUTE, has_tables=True)


def _check_options(
    options: Mapping[str, Any],
    schema: TableSchema,
    settings: ServiceSettings,
    in_query: Collection[str],
) -> None:
    limit, draws = settings.max_imputation_draws, options["draws"]
    pointer = "?draws" if "draws" in in_query else "/draws"
    if draws > limit:
        problem = Problem(f"draws is {draws}", pointer, expected=f"at most {limit}")
        raise TableLimitError(
            f"{draws} draws are requested", limit, "max_imputation_draws", problem
        )
    if draws > 1 and DRAW_COLUMN in schema:
        message = f"several draws add a column {DRAW_COLUMN!r}, which the table already has"
        raise RequestError(Problem(message, pointer, expected="1"))
    try:
        filled_columns(schema, options.get("columns"), options.get("keep_missing"))
    except InputError as error:
        problems = []
        for problem in error.problems:
            option = (problem.pointer or "").split("/")[1]
            is_in_query = option in in_query
            problems.append(replace(problem, pointer=f"?{option}") if is_in_query else problem)
        kind = UnknownColumnError if isinstance(error, UnknownColumnError) else RequestError
        raise kind(*problems) from None


def _named(**lists: str | None) -> dict[str, list[str]]:
    """Parses comma-separated lists of column names, by query parameter. Missing parameters (None)
    are left out."""
    try:
        return {name: read_names(text, f"?{name}") for name, text in given(**lists).items()}
    except InputError as error:
        raise RequestError(*error.problems) from None
