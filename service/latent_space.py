"""The latent space of a model: where rows lie in it, and what the decoder makes of its plane."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from catalog.records import Model
from gcvae.encoding_stream import MEDIA_TYPES, stream_encodings
from service.access import Workspace
from service.bodies import RowsBody
from service.downloads import attachment
from service.etags import tagged
from service.ingestion import read_rows
from service.negotiation import choose_form
from service.resources import Resources, Shared
from service.row_requests import documented, received_rows
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
        blocks = encode_blocks(resources, model, frame, form)
        content = await resources.inline.open(blocks, resources.settings.inline_seconds)
    headers = {"Vary": "Accept"}
    if form == "csv":
        headers["Content-Disposition"] = attachment(f"{model.name}-encodings.csv")
    return StreamingResponse(content, headers=headers, media_type=MEDIA_TYPES[form])


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
    content = await resources.inline.run(partial(draw_manifold, resources, model, steps, form))
    return tagged(request, content, PICTURE_TYPES[form], {"Vary": "Accept"})


def encode_blocks(
    resources: Resources, model: Model, frame: pd.DataFrame, form: str
) -> Iterator[bytes]:
    """The encodings as JSON or CSV, piece by piece."""
    blocks = resources.synthesizers.get(model).encode_blocks(frame)
    yield from stream_encodings(blocks, form, {"model_id": model.id})


def draw_manifold(resources: Resources, model: Model, steps: int, form: str) -> bytes:
    """The manifold as JSON text or as a picture; kept, since the same question gets the same."""
    key = (model.id, str(model.artifact_sha256), "manifold", str(steps), form)
    return resources.pictures.get(key, partial(_draw_manifold, resources, model, steps, form))


def _draw_manifold(resources: Resources, model: Model, steps: int, form: str) -> bytes:
    manifold = resources.synthesizers.get(model).manifold(steps)
    if form == "json":
        return json.dumps(manifold.to_json(), ensure_ascii=False, allow_nan=False).encode()
    return manifold.picture(form)
