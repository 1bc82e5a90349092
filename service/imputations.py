"""Imputations: tables whose blanks are filled, at once or by a job."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from catalog.dispatch import send_soon
from catalog.jobs import input_prefix
from catalog.records import JobKind, Model
from catalog.specs import ImputeSpec
from gcvae.errors import Problem
from gcvae.imputation_stream import DRAW_COLUMN, stream_completed
from gcvae.row_documents import rows_to_csv
from gcvae.schema import TableSchema
from gcvae.seeds import MAX_SEED
from service.access import Workspace
from service.bodies import NewImputationBody, ResultBody, result_body
from service.downloads import attachment
from service.errors import RequestError, TableLimitError
from service.idempotency import Answer, IdempotencyKey, created, fingerprint, once
from service.ingestion import check_size, read_rows
from service.jobs import require_room
from service.negotiation import TABLE_MEDIA_TYPES as MEDIA_TYPES
from service.negotiation import choose_form
from service.reservations import reserved
from service.resources import Resources, Shared
from service.results import content_path, result_routes
from service.synthesizers import require_ready
from service.uploads import Upload, received, table_format

if TYPE_CHECKING:
    import pandas as pd

router = APIRouter(tags=["imputations"])

_TABLE = {"schema": {"type": "string", "format": "binary"}}
_FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": {"type": "string", "format": "binary"}},
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NewImputationBody.model_json_schema()},
            "multipart/form-data": {"schema": _FORM},
            "text/csv": _TABLE,
            "application/gzip": _TABLE,
            "application/vnd.apache.parquet": _TABLE,
        },
    }
}


@dataclass(frozen=True)
class Imputing:
    """What is asked: a table in a file, completions of each row, seed, and the answer's form.

    `draws_place` is `?` where the draws stand in the query, and `/` where in the body.
    """

    model: Model
    upload: Upload
    draws: int
    seed: int
    form: str
    draws_place: str = "/"


@router.post(
    "/v1/models/{model_id}/imputations",
    response_class=Response,
    responses={
        200: {"content": dict.fromkeys(MEDIA_TYPES.values(), _TABLE)},
        202: {"model": ResultBody},
    },
    openapi_extra=_BODY,
)
async def impute_rows(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    key: IdempotencyKey = None,
    draws: Annotated[int | None, Query(ge=1, description="completions of each row")] = None,
    seed: Annotated[int | None, Query(ge=0, le=MAX_SEED)] = None,
    format: Annotated[str | None, Query(description="csv, parquet, json or jsonl")] = None,
) -> Response:
    """Fill the blanks of rows (JSON, CSV, Parquet) from p(missing | known). Known cells stay as
    they are. Above the inline limit (rows times draws) the answer is 202 and a job.
    """
    form = choose_form(format, request.headers.get("Accept"), MEDIA_TYPES)
    model = await run_in_threadpool(resources.catalog.models.get, model_id, workspace=workspace)
    require_ready(model)
    options = {"draws": draws, "seed": seed}
    async with _asked(request, resources, model, options, form) as imputing:
        frame = await resources.tables.run(partial(check_rows, resources, imputing))
        if len(frame) * imputing.draws <= resources.settings.max_inline_score_rows:
            return await answer_inline(resources, imputing, frame)

        async def make() -> Answer:
            made = await run_in_threadpool(partial(enqueue_imputation, resources, imputing))
            return created(202, made, f"/v1/jobs/{made.job_id}")

        sha256 = await run_in_threadpool(imputing.upload.sha256)
        request_sha256 = fingerprint(request, sha256, imputing.draws, imputing.seed, form)
        return await once(resources, workspace, key, request_sha256, make)


result_routes(router, JobKind.IMPUTE)


def check_rows(resources: Resources, imputing: Imputing) -> pd.DataFrame:
    """The rows as they were read, in a table that the model's schema fits.

    Raises:
        TableError: the rows are no table, or a cell can not be read under the schema.
        UnknownColumnError: a column that the model does not have.
        TableLimitError: too many draws, or rows in the answer.
    """
    limit, draws = resources.settings.max_imputation_draws, imputing.draws
    if draws > limit:
        place = f"{imputing.draws_place}draws"
        problem = Problem(f"draws is {draws}", place, expected=f"at most {limit}")
        raise TableLimitError(f"{draws} draws are asked", limit, "max_imputation_draws", problem)
    assert imputing.model.schema is not None, "a ready model has its schema"
    schema = TableSchema.from_json(imputing.model.schema)
    if draws > 1 and DRAW_COLUMN in schema:
        message = f"the draws would be numbered in a column {DRAW_COLUMN!r}, which the table has"
        raise RequestError(Problem(message, f"{imputing.draws_place}draws", expected="1"))
    frame = read_rows(imputing.upload, schema, resources.settings)
    check_size(len(frame) * draws, len(frame.columns), resources.settings)
    return frame


async def answer_inline(resources: Resources, imputing: Imputing, frame: pd.DataFrame) -> Response:
    """The completed table itself, block by block.

    Raises:
        PoolFullError: too much inline work waits.
    """
    blocks = completed_blocks(resources, imputing, frame)
    content = await resources.inline.open(blocks, resources.settings.inline_seconds)
    filename = f"{imputing.model.name}-completed.{imputing.form}"
    headers = {"Vary": "Accept", "Content-Disposition": attachment(filename)}
    return StreamingResponse(content, headers=headers, media_type=MEDIA_TYPES[imputing.form])


def completed_blocks(
    resources: Resources, imputing: Imputing, frame: pd.DataFrame
) -> Iterator[bytes]:
    """The completed table, piece by piece."""
    synthesizer = resources.synthesizers.get(imputing.model)
    blocks = synthesizer.impute_blocks(frame, draws=imputing.draws, seed=imputing.seed)
    yield from stream_completed(blocks, synthesizer.schema, imputing.form)


def enqueue_imputation(resources: Resources, imputing: Imputing) -> ResultBody:
    """A queued imputation job with its table in the store; its id is on its way.

    Raises:
        QueueFullError: too many jobs wait.
        ModelNotReadyError: the model is not ready (any more).
    """
    require_room(resources)
    catalog = resources.catalog
    job_id = catalog.jobs.new_id()
    prefix = input_prefix(job_id)
    with reserved(resources, prefix):
        file_format = table_format(imputing.upload.file)
        published = resources.store.publish(f"{prefix}table", imputing.upload.chunks())
        spec = ImputeSpec(
            table_key=published.key,
            table_sha256=published.sha256,
            table_format=file_format,
            draws=imputing.draws,
            seed=imputing.seed,
            format=imputing.form,
        )
        job = catalog.jobs.enqueue(
            JobKind.IMPUTE,
            model_id=imputing.model.id,
            spec=spec.to_json(),
            job_id=job_id,
            workspace=imputing.model.workspace,
        )
    send_soon(resources.dispatcher, job.id)
    return result_body(job, None, content_path(job))


@asynccontextmanager
async def _asked(
    request: Request, resources: Resources, model: Model, options: dict[str, int | None], form: str
) -> AsyncIterator[Imputing]:
    """What is asked; rows in JSON become a table in a file like any other."""
    given: dict[str, Any] = {name: n for name, n in options.items() if n is not None}
    given |= {"draws_place": "?"} if "draws" in given else {}
    essence = request.headers.get("Content-Type", "").split(";")[0].strip().lower()
    if essence == "application/json":
        body = _read_body(await request.body())
        assert model.schema is not None, "a ready model has its schema"
        schema = TableSchema.from_json(model.schema)
        content = await run_in_threadpool(rows_to_csv, body.rows, schema)
        asked: dict[str, Any] = {"draws": body.draws, "seed": body.seed} | given
        yield Imputing(
            model, Upload(io.BytesIO(content), None, None, is_json=True), form=form, **asked
        )
        return
    async with received(request, resources.settings) as upload:
        if upload.schema is not None:
            message = "rows are completed under the model's schema"
            raise RequestError(Problem(message, "/schema", expected="no schema"))
        asked = {"draws": 1, "seed": 0} | given
        yield Imputing(model, upload, form=form, **asked)


def _read_body(content: bytes) -> NewImputationBody:
    try:
        return NewImputationBody.model_validate_json(content)
    except ValidationError as error:
        found = [{**item, "loc": ("body", *item["loc"])} for item in error.errors()]
        raise RequestValidationError(found) from error
