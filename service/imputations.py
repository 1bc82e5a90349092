"""Imputations: tables whose blanks are filled, at once or by a job."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from catalog.records import JobKind, Model
from catalog.specs import ImputeSpec
from gcvae.errors import Problem
from gcvae.imputation_stream import DRAW_COLUMN
from gcvae.seeds import MAX_SEED
from service.access import Workspace
from service.bodies import NewImputationBody, ResultBody
from service.downloads import attachment
from service.errors import RequestError, TableLimitError
from service.idempotency import IdempotencyKey, enqueued_once, fingerprint
from service.ingestion import check_size, read_rows
from service.inline_work import complete_rows
from service.negotiation import TABLE_MEDIA_TYPES as MEDIA_TYPES
from service.negotiation import choose_form
from service.resources import Resources, Shared
from service.results import find_queued, result_routes
from service.row_requests import PriorityQuery, documented, enqueue_rows, received_rows, told
from service.shards import cut_rows
from service.synthesizers import require_ready, schema_of
from service.uploads import Upload

if TYPE_CHECKING:
    import pandas as pd

router = APIRouter(tags=["imputations"])

_TABLE = {"schema": {"type": "string", "format": "binary"}}


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
    openapi_extra=documented(NewImputationBody),
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
    priority: PriorityQuery = 0,
) -> Response:
    """Fill the blanks of rows (JSON, CSV, Parquet) from p(missing | known). Known cells stay as
    they are. Above the inline limit (rows times draws) the answer is 202 and a job.
    """
    form = choose_form(format, request.headers.get("Accept"), MEDIA_TYPES)
    model = await run_in_threadpool(resources.catalog.models.get, model_id, workspace=workspace)
    require_ready(model)
    query = told(draws=draws, seed=seed)
    async with received_rows(request, resources, model, NewImputationBody) as (upload, said):
        options = {"draws": 1, "seed": 0} | said | query
        draws_place = "?" if "draws" in query else "/"
        imputing = Imputing(model, upload, form=form, draws_place=draws_place, **options)
        frame = await resources.tables.run(partial(check_rows, resources, imputing))
        if len(frame) * imputing.draws <= resources.settings.max_inline_score_rows:
            return await answer_inline(resources, imputing, frame)

        spec = partial(ImputeSpec, format=form, **options)
        shard_rows = max(1, resources.settings.score_shard_rows // imputing.draws)
        enqueue = partial(
            enqueue_rows,
            *(resources, JobKind.IMPUTE, model, upload, spec),
            shards=cut_rows(len(frame), shard_rows),
            priority=priority,
            estimate=None,
        )
        sha256 = await run_in_threadpool(upload.sha256)
        asked = (sha256, options["draws"], options["seed"], form, priority)
        find = partial(find_queued, resources, workspace)
        request_sha256 = fingerprint(request, *asked)
        return await enqueued_once(resources, workspace, key, request_sha256, enqueue, find)


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
    schema = schema_of(imputing.model)
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
        ProcessDiedError: the process was killed at it.
    """
    asked = {name: getattr(imputing, name) for name in ("model", "draws", "seed", "form")}
    opened = await resources.inline.open(partial(complete_rows, frame=frame, **asked))
    filename = f"{imputing.model.name}-completed.{imputing.form}"
    headers = {"Vary": "Accept", "Content-Disposition": attachment(filename)}
    return StreamingResponse(opened.blocks, headers=headers, media_type=MEDIA_TYPES[imputing.form])
