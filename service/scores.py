"""Scores: how likely given rows are under a model, at once or by a job."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from catalog.dispatch import send_soon
from catalog.jobs import input_prefix
from catalog.records import JobKind, Model
from catalog.specs import ScoreSpec
from gcvae.errors import Problem
from gcvae.row_documents import rows_to_csv
from gcvae.schema import TableSchema
from gcvae.score_options import ScoreOptions
from gcvae.score_stream import MEDIA_TYPES, ScoreTotals, stream_scores
from gcvae.seeds import MAX_SEED
from service.access import Workspace
from service.bodies import NewScoresBody, ResultBody, result_body
from service.downloads import attachment
from service.errors import RequestError, TableLimitError
from service.idempotency import Answer, IdempotencyKey, created, fingerprint, once
from service.ingestion import read_rows
from service.jobs import require_room
from service.negotiation import choose_form
from service.reservations import reserved
from service.resources import Resources, Shared
from service.results import content_path, result_routes
from service.synthesizers import require_ready
from service.uploads import Upload, received, table_format

if TYPE_CHECKING:
    import pandas as pd

router = APIRouter(tags=["scores"])

_TABLE = {"schema": {"type": "string", "format": "binary"}}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NewScoresBody.model_json_schema()},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
            "text/csv": _TABLE,
            "application/gzip": _TABLE,
            "application/vnd.apache.parquet": _TABLE,
        },
    }
}


@dataclass(frozen=True)
class Scoring:
    """What is asked: rows (a table in a file), how they are scored, and the answer's form.

    `draws_place` is `?` where the draws stand in the query, and `/` where in the body.
    """

    model: Model
    upload: Upload
    options: ScoreOptions
    form: str
    draws_place: str = "/"


@router.post(
    "/v1/models/{model_id}/scores",
    response_class=Response,
    responses={
        200: {"content": {"application/json": {"schema": {"type": "object"}}, "text/csv": _TABLE}},
        202: {"model": ResultBody},
    },
    openapi_extra=_BODY,
)
async def score_rows(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    key: IdempotencyKey = None,
    draws: Annotated[int | None, Query(ge=1, description="draws of z for each row")] = None,
    seed: Annotated[int | None, Query(ge=0, le=MAX_SEED)] = None,
    jitters: Annotated[
        int | None,
        Query(ge=0, description="of a copula's discrete cells in each draw; 0 integrates exactly"),
    ] = None,
    measure: Annotated[
        Literal["density", "rounding_cell", "pmf"] | None,
        Query(description="of continuous values: per unit, of the rounding cell, of the bin"),
    ] = None,
    score_missingness: Annotated[
        bool | None, Query(description="score that blanks are missing; else integrate them out")
    ] = None,
    format: Annotated[str | None, Query(description="json or csv; else by Accept")] = None,
) -> Response:
    """Score rows (JSON, CSV, Parquet): for each a lower bound on log p(row) in nats, its standard
    error, its percentile among held-out training rows, and the columns' contributions, which add
    up. The JSON says in `measure` and `notes` what the numbers mean. A blank cell is integrated
    out; an unseen level scores -Infinity. Above the inline limit the answer is 202 and a job.
    """
    form = choose_form(format, request.headers.get("Accept"), MEDIA_TYPES)
    model = await run_in_threadpool(resources.catalog.models.get, model_id, workspace=workspace)
    require_ready(model)
    options = {
        "draws": draws,
        "seed": seed,
        "jitters": jitters,
        "measure": measure,
        "score_missingness": score_missingness,
    }
    async with _asked(request, resources, model, options, form) as scoring:
        frame = await resources.tables.run(partial(check_rows, resources, scoring))
        if len(frame) <= resources.settings.max_inline_score_rows:
            return await answer_inline(resources, scoring, frame)

        async def make() -> Answer:
            made = await run_in_threadpool(partial(enqueue_scores, resources, scoring))
            return created(202, made, f"/v1/jobs/{made.job_id}")

        sha256 = await run_in_threadpool(scoring.upload.sha256)
        asked = scoring.options.to_json().values()
        request_sha256 = fingerprint(request, sha256, *asked, scoring.form)
        return await once(resources, workspace, key, request_sha256, make)


result_routes(router, JobKind.SCORE)


def check_rows(resources: Resources, scoring: Scoring) -> pd.DataFrame:
    """The rows as they were read, in a table that the model's schema fits.

    Raises:
        TableError: the rows are no table, or a cell can not be read under the schema.
        UnknownColumnError: a column that the model does not have.
    """
    limit = resources.settings.max_score_draws
    draws = scoring.options.draws * max(1, scoring.options.jitters)
    if draws > limit:
        place = f"{scoring.draws_place}draws"
        message = f"draws is {scoring.options.draws}"
        if scoring.options.jitters > 1:
            message += f" with {scoring.options.jitters} jitters in each"
        problem = Problem(message, place, expected=f"at most {limit}")
        raise TableLimitError(f"{draws} draws are asked", limit, "max_score_draws", problem)
    assert scoring.model.schema is not None, "a ready model has its schema"
    schema = TableSchema.from_json(scoring.model.schema)
    return read_rows(scoring.upload, schema, resources.settings)


async def answer_inline(resources: Resources, scoring: Scoring, frame: pd.DataFrame) -> Response:
    """The scores themselves, block by block.

    Raises:
        PoolFullError: too much inline work waits.
    """
    blocks = score_blocks(resources, scoring, frame)
    content = await resources.inline.open(blocks, resources.settings.inline_seconds)
    headers = {"Vary": "Accept"}
    if scoring.form == "csv":
        headers["Content-Disposition"] = attachment(f"{scoring.model.name}-scores.csv")
    return StreamingResponse(content, headers=headers, media_type=MEDIA_TYPES[scoring.form])


def score_blocks(resources: Resources, scoring: Scoring, frame: pd.DataFrame) -> Iterator[bytes]:
    """The scores as JSON or CSV, piece by piece."""
    synthesizer = resources.synthesizers.get(scoring.model)
    scorer = synthesizer.scorer
    blocks = scorer.blocks(frame, scoring.options)
    heading = {"model_id": scoring.model.id} | scoring.options.heading(scorer.order())
    yield from stream_scores(blocks, scoring.form, heading, ScoreTotals())


def enqueue_scores(resources: Resources, scoring: Scoring) -> ResultBody:
    """A queued score job with its table in the store; its id is on its way.

    Raises:
        QueueFullError: too many jobs wait.
        ModelNotReadyError: the model is not ready (any more).
    """
    require_room(resources)
    catalog = resources.catalog
    job_id = catalog.jobs.new_id()
    prefix = input_prefix(job_id)
    with reserved(resources, prefix):
        file_format = table_format(scoring.upload.file)
        published = resources.store.publish(f"{prefix}table", scoring.upload.chunks())
        spec = ScoreSpec(
            table_key=published.key,
            table_sha256=published.sha256,
            table_format=file_format,
            format=scoring.form,
            **scoring.options.to_json(),
        )
        job = catalog.jobs.enqueue(
            JobKind.SCORE,
            model_id=scoring.model.id,
            spec=spec.to_json(),
            job_id=job_id,
            workspace=scoring.model.workspace,
        )
    send_soon(resources.dispatcher, job.id)
    return result_body(job, None, content_path(job))


@asynccontextmanager
async def _asked(
    request: Request, resources: Resources, model: Model, options: dict[str, Any], form: str
) -> AsyncIterator[Scoring]:
    """What is asked; rows in JSON become a table in a file like any other."""
    given = {name: value for name, value in options.items() if value is not None}
    place = "?" if "draws" in given else "/"
    essence = request.headers.get("Content-Type", "").split(";")[0].strip().lower()
    if essence == "application/json":
        body = read_body(await request.body())
        assert model.schema is not None, "a ready model has its schema"
        schema = TableSchema.from_json(model.schema)
        content = await run_in_threadpool(rows_to_csv, body.rows, schema)
        asked = ScoreOptions(**(body.model_dump(exclude={"rows"}) | given))
        yield Scoring(
            model, Upload(io.BytesIO(content), None, None, is_json=True), asked, form, place
        )
        return
    async with received(request, resources.settings) as upload:
        _refuse_schema(upload)
        yield Scoring(model, upload, ScoreOptions(**given), form, place)


def read_body(content: bytes) -> NewScoresBody:
    """The JSON body.

    Raises:
        RequestValidationError: it is none, with the place of each fault.
    """
    try:
        return NewScoresBody.model_validate_json(content)
    except ValidationError as error:
        found = [{**item, "loc": ("body", *item["loc"])} for item in error.errors()]
        raise RequestValidationError(found) from error


def _refuse_schema(upload: Upload) -> None:
    if upload.schema is not None:
        message = "rows are scored under the model's schema"
        raise RequestError(Problem(message, "/schema", expected="no schema"))
