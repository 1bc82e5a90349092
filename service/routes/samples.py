"""Endpoint that generates synthetic rows, in the response or by a job."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Self, get_args

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, StrictBool, model_validator
from starlette.concurrency import run_in_threadpool

from catalog.job_kinds import JobKind, SampleSpec
from catalog.records import DataKind, Job, Model, Result
from catalog.workspace import Workspace as OpenedWorkspace
from gcvae.errors import Problem
from gcvae.files.row_documents import rows_to_csv
from gcvae.numerics.seeds import derived_seed, fresh_seed
from gcvae.training.costs import Computation
from service.access import Workspace
from service.bodies import (
    PRIORITY,
    Cell,
    Priority,
    RequestBody,
    ResultBody,
    Seed,
    TableFormat,
    Whole,
)
from service.database_samples import checked_spec, expected_rows
from service.errors import RequestError, TableLimitError
from service.http.body_limits import ARCHIVE_TYPE
from service.http.downloads import attachment
from service.http.idempotency import IdempotencyKey, enqueue_once, fingerprint
from service.http.json_bodies import JsonRoute
from service.http.negotiation import SAMPLE_CONTENT
from service.http.negotiation import TABLE_MEDIA_TYPES as MEDIA_TYPES
from service.inline.synthesizers import require_ready, schema_of
from service.inline.work import check_conditions, draw_database, draw_sample
from service.resources import Resources, Shared
from service.routes.jobs import require_room
from service.routes.results import (
    cut_rows,
    enqueue,
    estimate,
    find_queued,
    find_result,
    result_routes,
)

router = APIRouter(tags=["samples"], route_class=JsonRoute)


class NewSampleBody(RequestBody):
    """Number of synthetic rows, conditions on them, and format."""

    rows: Annotated[Whole, Field(ge=1)] | None = Field(
        None,
        description="number of rows; not for databases, and optional with `given_rows`",
    )
    scale: float | None = Field(
        None, description="for databases: rows as a multiple of the real tables; default 1"
    )
    parents: Annotated[Whole, Field(ge=1)] | None = Field(
        None, description="for databases, instead of scale: rows of each table without a parent"
    )
    seed: Seed | None = Field(
        None, description="the same seed gives the same rows; default: a random seed"
    )
    format: Annotated[str, Field(json_schema_extra={"enum": [*get_args(TableFormat)]})] = "csv"
    priority: Priority = Field(0, description=f"{PRIORITY}; only for jobs")
    given: dict[str, Any] | None = Field(
        None,
        description="conditions by column: a value, a list of values, "
        '`{"min": …, "max": …}`, or null for a missing cell',
    )
    distribution: dict[str, dict[str, float]] | None = Field(
        None, description='target shares of the levels of a column: `{"sex": {"Female": 0.5, …}}`'
    )
    given_rows: list[dict[str, Cell]] | None = Field(
        None,
        min_length=1,
        description="partially observed rows to complete; null or absent cells are unknown",
    )

    job: StrictBool = Field(
        False, description="always make a job, whose result can be exported to a connection"
    )
    escape_formulas: StrictBool = Field(
        False,
        description="in CSV: put ' before texts that a spreadsheet would read as formulas",
    )

    @model_validator(mode="after")
    def _count_given_rows(self) -> Self:
        if self.rows is None and self.given_rows is not None:
            self.rows = len(self.given_rows)
        return self


@router.post(
    "/v1/models/{model_id}/samples",
    response_class=Response,
    responses={
        200: {"content": SAMPLE_CONTENT},
        202: {"model": ResultBody},
    },
)
async def sample_model(
    model_id: str,
    body: NewSampleBody,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    key: IdempotencyKey = None,
    table: Annotated[
        str | None, Query(description="for databases: only this table instead of a ZIP file of all")
    ] = None,
) -> Response:
    """Generate synthetic rows. The response streams the table or, for a database, a ZIP file with a
    CSV or Parquet file for each table. For more rows than `GCVAE_MAX_INLINE_SAMPLE_ROWS`, the
    response is 202 and a job.

    The header `Gcvae-Seed` contains the seed that generates the same rows again. `Gcvae-Notes`, a
    JSON list, names columns whose synthetic identifiers are longer than those of the table, because
    there are not enough short ones.
    """
    check_given_rows(body)
    model = await run_in_threadpool(workspace.models.get, model_id)
    require_ready(model)
    request_sha256 = fingerprint(
        request, body.model_dump(mode="json"), *([] if table is None else [table])
    )
    spec = await run_in_threadpool(
        sample_spec, model, body, _seed(body, key, request_sha256), table
    )
    n_rows = expected_rows(model, spec) if spec.rows is None else spec.rows
    member = "rows" if spec.rows is not None else "scale" if spec.parents is None else "parents"
    check_rows(n_rows, resources, f"/{member}")
    if n_rows <= resources.settings.max_inline_sample_rows and not body.job:
        return await answer_inline(resources, model, spec)

    if spec.is_conditional:  # refused now instead of in a job
        await resources.inline.run(partial(check_conditions, model=model, spec=spec))

    make = partial(enqueue_sample, resources, workspace, model, spec, body.priority)
    find = partial(find_queued, workspace)
    response = await enqueue_once(workspace, key, request_sha256, make, find)
    response.headers["Gcvae-Seed"] = str(spec.seed)
    return response


result_routes(router, JobKind.SAMPLE, has_tables=True)


def find_sample(workspace: OpenedWorkspace, result_id: str) -> tuple[Job, Result | None]:
    """Returns the job of a sample, and its result once the job has succeeded."""
    return find_result(workspace, JobKind.SAMPLE, result_id)


async def answer_inline(resources: Resources, model: Model, spec: SampleSpec) -> Response:
    """Returns a response that streams generated rows.

    The first rows are generated before this function returns, so that an error in this step can
    still determine the status of the response.
    """
    draw = draw_sample if model.kind is DataKind.TABLE else draw_database
    stream = await resources.inline.open(partial(draw, model=model, spec=spec))
    is_archive = model.kind is DataKind.DATABASE and spec.table is None
    media_type = ARCHIVE_TYPE if is_archive else MEDIA_TYPES[spec.format]
    name, ending = spec.table or f"{model.name}-synthetic", "zip" if is_archive else spec.format
    headers = {
        "Content-Disposition": attachment(f"{name}.{ending}"),
        "Gcvae-Seed": str(spec.seed),
    }
    for name, figure in stream.summary.items():
        headers[f"Gcvae-{name.replace('_', '-').title()}"] = str(figure)
    return StreamingResponse(stream.chunks, headers=headers, media_type=media_type)


def enqueue_sample(
    resources: Resources, workspace: Workspace, model: Model, spec: SampleSpec, priority: int
) -> ResultBody:
    """Queues a job that generates rows. Returns the response body."""
    require_room(resources, workspace)
    n_rows = expected_rows(model, spec) if spec.rows is None else spec.rows
    shard_rows = resources.settings.sample_shard_rows
    return enqueue(
        *(resources, workspace, JobKind.SAMPLE, model, spec),
        shards=() if spec.rows is None else cut_rows(n_rows, shard_rows),
        priority=priority,
        # The cost of conditions is unknown.
        estimate=None if spec.is_conditional else estimate(model, Computation.SAMPLE, n_rows),
    )


def _seed(body: NewSampleBody, key: str | None, request_sha256: str) -> int:
    """Returns the seed in the request. Without one, it is derived from the Idempotency-Key `key`,
    so that a repeated request gets the same rows. Without a key, the seed is random."""
    if body.seed is not None:
        return body.seed
    return fresh_seed() if key is None else derived_seed(key, request_sha256)


def sample_spec(
    model: Model, body: NewSampleBody, seed: int, table_name: str | None = None
) -> SampleSpec:
    """Checks a request for a sample. Returns it in the form that a job stores.

    Raises:
        RequestError: A member is missing, invalid, or not for this kind of model.
        NotOfferedError: The model is of a database, and a member is only for single tables.
    """
    of_database: dict[str, Any] = {
        "scale": body.scale,
        "parents": body.parents,
        "table": table_name,
    }
    rows = body.given_rows
    if model.kind is DataKind.DATABASE:
        database_spec = SampleSpec(
            *(body.rows, seed, body.format, body.given, body.distribution),
            given_rows=None if rows is None else "",
            escape_formulas=body.escape_formulas,
            **of_database,
        )
        return checked_spec(model, database_spec)
    for name, value in of_database.items():
        if value is not None:
            pointer = f"?{name}" if name == "table" else f"/{name}"
            message = (
                f"{name} is only for models of databases; model {model.id} is a model of one table"
            )
            raise RequestError(Problem(message, pointer, expected="rows"))
    if body.format not in get_args(TableFormat):
        expected = ", ".join(get_args(TableFormat))
        raise RequestError(Problem(f"format is {body.format!r}", "/format", expected=expected))
    if body.rows is None:
        message, expected = "rows is missing", "the number of rows, 1 or more"
        raise RequestError(Problem(message, "/rows", expected=expected))
    table = None if rows is None else rows_to_csv(rows, schema_of(model), "/given_rows").decode()
    return SampleSpec(
        *(body.rows, seed, body.format, body.given, body.distribution, table),
        escape_formulas=body.escape_formulas,
    )


def check_given_rows(body: NewSampleBody) -> None:
    """Checks that `given_rows` is the only condition, and that `rows` is their number.

    Raises:
        RequestError: There are other conditions, or `rows` is another number.
    """
    others = (body.given, body.distribution)
    if body.given_rows is not None and others != (None, None):
        message = "given_rows cannot be combined with given or distribution"
        raise RequestError(Problem(message, "/given_rows", expected="one of them"))
    n_rows = body.rows if body.given_rows is None else len(body.given_rows)
    if body.rows != n_rows:
        message = f"rows is {body.rows}, and {n_rows} rows have known cells"
        raise RequestError(Problem(message, "/rows", expected=str(n_rows)))


def check_rows(rows: int, resources: Resources, pointer: str) -> None:
    """Checks that a request does not generate more than `max_sample_rows` rows.

    Args:
        pointer: JSON pointer to the member of the request that determines the number, for errors.

    Raises:
        TableLimitError: There are too many rows.
    """
    limit = resources.settings.max_sample_rows
    if rows > limit:
        what = f"rows is {rows}" if pointer == "/rows" else f"about {rows} rows in all"
        problem = Problem(what, pointer=pointer, expected=f"at most {limit}")
        raise TableLimitError(f"{rows} rows are requested", limit, "max_sample_rows", problem)
