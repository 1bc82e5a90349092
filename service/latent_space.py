"""The latent space of a model: where rows lie in it, and what the decoder makes of its plane."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from gcvae.encoding_stream import MEDIA_TYPES
from service import inline_work
from service.access import Workspace
from service.bodies import RowsBody
from service.downloads import attachment
from service.etags import tagged
from service.ingestion import read_rows
from service.negotiation import choose_form
from service.resources import Shared
from service.row_requests import documented, received_rows
from service.synthesizers import require_ready, schema_of

PICTURE_TYPES = {"json": "application/json", "png": "image/png", "svg": "image/svg+xml"}

router = APIRouter(tags=["latent space"])

_BYTES = {"schema": {"type": "string", "format": "binary"}}
_OBJECT = {"schema": {"type": "object"}}


@router.post(
    "/v1/models/{model_id}/encodings",
    response_class=Response,
    responses={200: {"content": {"application/json": _OBJECT, "text/csv": _BYTES}}},
    openapi_extra=documented(RowsBody),
)
async def encode_rows(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    format: Annotated[str | None, Query(description="json or csv; else by Accept")] = None,
) -> Response:
    """Encode rows (JSON, CSV, Parquet): mean and standard deviation of the posterior of z of each,
    in order. A blank cell is one that is not known.
    """
    form = choose_form(format, request.headers.get("Accept"), MEDIA_TYPES)
    model = await run_in_threadpool(resources.catalog.models.get, model_id, workspace=workspace)
    require_ready(model)
    async with received_rows(request, resources, model, RowsBody) as (upload, _):
        check = partial(read_rows, upload, schema_of(model), resources.settings)
        frame = await resources.tables.run(check)
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
