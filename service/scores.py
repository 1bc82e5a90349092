"""Scores: how likely given rows are under a model, at once or by a job."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from catalog.records import JobKind, Model
from catalog.specs import ScoreSpec
from gcvae.errors import Problem
from gcvae.score_options import ScoreOptions
from gcvae.score_stream import MEDIA_TYPES
from gcvae.seeds import MAX_SEED
from service import inline_work
from service.access import Workspace
from service.bodies import NewScoresBody, ResultBody
from service.downloads import attachment
from service.errors import TableLimitError
from service.estimates import estimate_scores
from service.idempotency import IdempotencyKey, enqueued_once, fingerprint
from service.ingestion import read_rows
from service.negotiation import choose_form
from service.resources import Resources, Shared
from service.results import find_queued, result_routes
from service.row_requests import PriorityQuery, documented, enqueue_rows, received_rows, told
from service.shards import cut_rows
from service.synthesizers import require_ready, schema_of
from service.uploads import Upload

if TYPE_CHECKING:
    import pandas as pd

router = APIRouter(tags=["scores"])

_TABLE = {"schema": {"type": "string", "format": "binary"}}


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
    openapi_extra=documented(NewScoresBody),
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
    priority: PriorityQuery = 0,
) -> Response:
    """Score rows (JSON, CSV, Parquet): for each a lower bound on log p(row) in nats, its standard
    error, its percentile among held-out training rows, and the columns' contributions, which add
    up. The JSON says in `measure` and `notes` what the numbers mean. A blank cell is integrated
    out; an unseen level scores -Infinity. Above the inline limit the answer is 202 and a job.
    """
    form = choose_form(format, request.headers.get("Accept"), MEDIA_TYPES)
    model = await run_in_threadpool(resources.catalog.models.get, model_id, workspace=workspace)
    require_ready(model)
    query = told(
        draws=draws,
        seed=seed,
        jitters=jitters,
        measure=measure,
        score_missingness=score_missingness,
    )
    async with received_rows(request, resources, model, NewScoresBody) as (upload, said):
        options = ScoreOptions(**(said | query))
        scoring = Scoring(model, upload, options, form, "?" if "draws" in query else "/")
        frame = await resources.tables.run(partial(check_rows, resources, scoring))
        if len(frame) <= resources.settings.max_inline_score_rows:
            return await answer_inline(resources, scoring, frame)

        spec = partial(ScoreSpec, format=form, **options.to_json())
        estimate = estimate_scores(model, len(frame), options.draws)
        enqueue = partial(
            enqueue_rows,
            *(resources, JobKind.SCORE, model, upload, spec),
            shards=cut_rows(len(frame), resources.settings.score_shard_rows),
            priority=priority,
            estimate=estimate,
        )
        asked = (await run_in_threadpool(upload.sha256), *options.to_json().values(), form)
        asked = (*asked, priority)
        find = partial(find_queued, resources, workspace)
        request_sha256 = fingerprint(request, *asked)
        return await enqueued_once(resources, workspace, key, request_sha256, enqueue, find)


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
    return read_rows(scoring.upload, schema_of(scoring.model), resources.settings)


async def answer_inline(resources: Resources, scoring: Scoring, frame: pd.DataFrame) -> Response:
    """The scores themselves, block by block.

    Raises:
        PoolFullError: too much inline work waits.
        ProcessDiedError: the process was killed at it.
    """
    work = partial(
        inline_work.score_rows,
        model=scoring.model,
        frame=frame,
        options=scoring.options,
        form=scoring.form,
    )
    opened = await resources.inline.open(work)
    headers = {"Vary": "Accept"}
    if scoring.form == "csv":
        headers["Content-Disposition"] = attachment(f"{scoring.model.name}-scores.csv")
    return StreamingResponse(opened.blocks, headers=headers, media_type=MEDIA_TYPES[scoring.form])
