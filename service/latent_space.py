"""The latent space of a model: where rows lie in it, and what the decoder makes of its plane."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from catalog.records import JobKind, Model
from catalog.specs import EncodeSpec
from gcvae.encoding_stream import MEDIA_TYPES
from service import inline_work
from service.access import Workspace
from service.bodies import ResultBody, RowsBody
from service.downloads import attachment
from service.etags import tagged
from service.idempotency import IdempotencyKey, enqueued_once, fingerprint
from service.ingestion import read_rows
from service.negotiation import choose_form
from service.resources import Resources, Shared
from service.results import find_queued, result_routes
from service.row_requests import PriorityQuery, documented, enqueue_rows, received_rows
from service.shards import cut_rows
from service.synthesizers import require_ready, schema_of

if TYPE_CHECKING:
    import pandas as pd

PICTURE_TYPES = {"json": "application/json", "png": "image/png", "svg": "image/svg+xml"}

router = APIRouter(tags=["latent space"])

_BYTES = {"schema": {"type": "string", "format": "binary"}}
_OBJECT = {"schema": {"type": "object"}}


@router.post(
    "/v1/models/{model_id}/encodings",
    response_class=Response,
    responses={
        200: {"content": {"application/json": _OBJECT, "text/csv": _BYTES}},
        202: {"model": ResultBody},
    },
    openapi_extra=documented(RowsBody),
)
async def encode_rows(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    key: IdempotencyKey = None,
    format: Annotated[str | None, Query(description="json or csv; else by Accept")] = None,
    priority: PriorityQuery = 0,
) -> Response:
    """Encode rows (JSON, CSV, Parquet): mean and standard deviation of the posterior of z of each,
    in order. A blank cell is one that is not known. Above the inline limit the answer is 202 and a
    job.
    """
    form = choose_form(format, request.headers.get("Accept"), MEDIA_TYPES)
    model = await run_in_threadpool(resources.catalog.models.get, model_id, workspace=workspace)
    require_ready(model)
    async with received_rows(request, resources, model, RowsBody) as (upload, _):
        check = partial(read_rows, upload, schema_of(model), resources.settings)
        frame = await resources.tables.run(check)
        if len(frame) <= resources.settings.max_inline_score_rows:
            return await answer_inline(resources, model, frame, form)

        enqueue = partial(
            enqueue_rows,
            *(resources, JobKind.ENCODE, model, upload, partial(EncodeSpec, format=form)),
            shards=cut_rows(len(frame), resources.settings.score_shard_rows),
            priority=priority,
            estimate=None,
        )
        asked = fingerprint(request, await run_in_threadpool(upload.sha256), form, priority)
        find = partial(find_queued, resources, workspace)
        return await enqueued_once(resources, workspace, key, asked, enqueue, find)


result_routes(router, JobKind.ENCODE)


async def answer_inline(
    resources: Resources, model: Model, frame: pd.DataFrame, form: str
) -> Response:
    """The encodings themselves, block by block.

    Raises:
        PoolFullError: too much inline work waits.
        ProcessDiedError: the process was killed at it.
    """
    work = partial(inline_work.encode_rows, model=model, frame=frame, form=form)
    opened = await resources.inline.open(work)
    headers = {"Vary": "Accept"}
    if form == "csv":
        headers["Content-Disposition"] = attachment(f"{model.name}-encodings.csv")
    return StreamingResponse(opened.blocks, headers=headers, media_type=MEDIA_TYPES[form])


@router.get(
    "/v1/models/{model_id}/manifold",
    response_class=Response,
    responses={
        200: {
            "content": {
                "application/json": _OBJECT,
                "image/png": _BYTES,
                "image/svg+xml": _BYTES,
            }
        }
    },
)
async def map_manifold(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    steps: Annotated[int, Query(ge=2, le=50, description="quantiles a dimension")] = 15,
    format: Annotated[str | None, Query(description="json, png or svg; else by Accept")] = None,
) -> Response:
    """What the decoder makes of a grid over the prior's quantiles: JSON, PNG or SVG. Models of a
    two-dimensional latent space (`d_latent` 2) only; others are refused with 422.
    """
    form = choose_form(format, request.headers.get("Accept"), PICTURE_TYPES)
    model = await run_in_threadpool(resources.catalog.models.get, model_id, workspace=workspace)
    require_ready(model)
    content = await resources.inline.run(
        partial(inline_work.draw_manifold, model=model, steps=steps, form=form)
    )
    return tagged(request, content, PICTURE_TYPES[form], {"Vary": "Accept"})
