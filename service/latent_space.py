"""The latent space of a model: where rows lie in it, and what the decoder makes of its plane."""

from __future__ import annotations

import io
import json
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

from catalog.records import Model
from gcvae.encoding_stream import MEDIA_TYPES, stream_encodings
from gcvae.errors import Problem
from gcvae.row_documents import rows_to_csv
from gcvae.schema import TableSchema
from service.access import Workspace
from service.bodies import NewEncodingsBody
from service.downloads import attachment
from service.errors import RequestError
from service.etags import tagged
from service.ingestion import read_rows
from service.negotiation import choose_form
from service.resources import Resources, Shared
from service.synthesizers import require_ready
from service.uploads import Upload, received

if TYPE_CHECKING:
    import pandas as pd

PICTURE_TYPES = {"json": "application/json", "png": "image/png", "svg": "image/svg+xml"}

router = APIRouter(tags=["latent space"])

_BYTES = {"schema": {"type": "string", "format": "binary"}}
_ROWS = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NewEncodingsBody.model_json_schema()},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
            "text/csv": _BYTES,
            "application/gzip": _BYTES,
            "application/vnd.apache.parquet": _BYTES,
        },
    }
}
_OBJECT = {"schema": {"type": "object"}}


@dataclass(frozen=True)
class Encoding:
    """What is asked: rows (a table in a file), and the answer's form."""

    model: Model
    upload: Upload
    form: str


@router.post(
    "/v1/models/{model_id}/encodings",
    response_class=Response,
    responses={200: {"content": {"application/json": _OBJECT, "text/csv": _BYTES}}},
    openapi_extra=_ROWS,
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
    async with _asked(request, resources, model, form) as encoding:
        frame = await resources.tables.run(partial(check_rows, resources, encoding))
        blocks = encode_blocks(resources, encoding, frame)
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


def check_rows(resources: Resources, encoding: Encoding) -> pd.DataFrame:
    """The rows as they were read, in a table that the model's schema fits.

    Raises:
        TableError: the rows are no table, or a cell can not be read under the schema.
        UnknownColumnError: a column that the model does not have.
    """
    return read_rows(encoding.upload, _schema_of(encoding.model), resources.settings)


def encode_blocks(resources: Resources, encoding: Encoding, frame: pd.DataFrame) -> Iterator[bytes]:
    """The encodings as JSON or CSV, piece by piece."""
    blocks = resources.synthesizers.get(encoding.model).encode_blocks(frame)
    yield from stream_encodings(blocks, encoding.form, {"model_id": encoding.model.id})


def draw_manifold(resources: Resources, model: Model, steps: int, form: str) -> bytes:
    """The manifold as JSON text or as a picture; kept, since the same question gets the same."""
    key = (model.id, str(model.artifact_sha256), "manifold", str(steps), form)
    return resources.pictures.get(key, partial(_draw_manifold, resources, model, steps, form))


def _draw_manifold(resources: Resources, model: Model, steps: int, form: str) -> bytes:
    manifold = resources.synthesizers.get(model).manifold(steps)
    if form == "json":
        return json.dumps(manifold.to_json(), ensure_ascii=False, allow_nan=False).encode()
    return manifold.picture(form)


@asynccontextmanager
async def _asked(
    request: Request, resources: Resources, model: Model, form: str
) -> AsyncIterator[Encoding]:
    """What is asked; rows in JSON become a table in a file like any other."""
    essence = request.headers.get("Content-Type", "").split(";")[0].strip().lower()
    if essence == "application/json":
        body = _read_body(await request.body())
        content = await run_in_threadpool(rows_to_csv, body.rows, _schema_of(model))
        yield Encoding(model, Upload(io.BytesIO(content), None, None, is_json=True), form)
        return
    async with received(request, resources.settings) as upload:
        if upload.schema is not None:
            message = "rows are encoded under the model's schema"
            raise RequestError(Problem(message, "/schema", expected="no schema"))
        yield Encoding(model, upload, form)


def _read_body(content: bytes) -> NewEncodingsBody:
    try:
        return NewEncodingsBody.model_validate_json(content)
    except ValidationError as error:
        found: list[Any] = [{**item, "loc": ("body", *item["loc"])} for item in error.errors()]
        raise RequestValidationError(found) from error


def _schema_of(model: Model) -> TableSchema:
    assert model.schema is not None, "a ready model has its schema"
    return TableSchema.from_json(model.schema)
