"""Endpoints that describe a model by dependency maps (Kendall's tau of all pairs of columns) or a
manifold (the decoder's output on a grid of latent vectors)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from catalog.records import Model
from gcvae.dependence.notes import KINDS, MAPS_OF_MODEL
from gcvae.errors import Problem
from gcvae.numerics.seeds import MAX_SEED
from gcvae.schema.suggestions import unknown_name
from service.access import Workspace
from service.bodies import NewMapBody
from service.errors import RequestError
from service.http.etags import tagged
from service.http.json_bodies import JsonRoute
from service.http.negotiation import (
    PICTURE_MEDIA_TYPES,
    PictureFormat,
    choose_format,
    picture_content,
)
from service.inline.synthesizers import require_table
from service.inline.work import draw_local_map, draw_manifold, draw_map
from service.resources import Shared

router = APIRouter(route_class=JsonRoute)

_MATRIX = {"type": "array", "items": {"type": "array", "items": {"type": ["number", "null"]}}}
_MAP: dict[str, Any] = {
    "type": "object",
    "required": ["columns", "kind", "tau", "unsigned", "measure", "notes", "nominal", "order"],
    "properties": {
        "columns": {"type": "array", "items": {"type": "string"}},
        "kind": {"type": "string", "enum": list(KINDS)},
        "tau": _MATRIX,
        "unsigned": _MATRIX,
        "measure": {"type": "string"},
        "notes": {"type": "array", "items": {"type": "string"}},
        "nominal": {"type": "array", "items": {"type": "string"}},
        "order": {"type": "array", "items": {"type": "integer"}},
        "spread": _MATRIX,
    },
}
_MAP_ANSWER = {"content": picture_content(_MAP)}


@router.get(
    "/v1/models/{model_id}/dependencies",
    tags=["dependencies"],
    response_class=Response,
    responses={200: _MAP_ANSWER},
)
async def map_dependencies(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    kind: Annotated[str, Query(description=f"one of {', '.join(MAPS_OF_MODEL)}")] = "expected",
    format: PictureFormat = None,
    seed: Annotated[int, Query(ge=0, le=MAX_SEED)] = 0,
    order: Annotated[
        str | None,
        Query(description="kind of map that orders the columns; default: the kind of the map"),
    ] = None,
) -> Response:
    """Read a dependency map (Kendall's tau of all pairs of columns) as JSON, PNG or SVG, chosen by
    `format` or by the Accept header. `notes` explain the measure and its limits. Values between a
    column with a single value and other columns are null."""
    _check_kind(kind)
    if order is not None:
        _check_kind(order, "?order")
    response_format, model = await _pictured_model(
        model_id, request, workspace, format, "dependency maps"
    )
    work = partial(
        draw_map, model=model, kind=kind, response_format=response_format, seed=seed, order=order
    )
    content = await resources.inline.run(work)
    return tagged(request, content, PICTURE_MEDIA_TYPES[response_format], {"Vary": "Accept"})


@router.post(
    "/v1/models/{model_id}/dependencies",
    tags=["dependencies"],
    response_class=Response,
    responses={200: _MAP_ANSWER},
)
async def map_at_row(
    model_id: str,
    body: NewMapBody,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    format: PictureFormat = None,
) -> Response:
    """Compute the `local` dependency map, which describes the decoder's Gaussian copula at one row
    or one latent vector z. For a row, the map is averaged over the posterior of z, with missing
    cells integrated out."""
    response_format, model = await _pictured_model(
        model_id, request, workspace, format, "dependency maps"
    )
    content = await resources.inline.run(
        partial(draw_local_map, model=model, body=body, response_format=response_format)
    )
    return Response(
        content, media_type=PICTURE_MEDIA_TYPES[response_format], headers={"Vary": "Accept"}
    )


@router.get(
    "/v1/models/{model_id}/manifold",
    tags=["latent space"],
    response_class=Response,
    responses={200: {"content": picture_content({"type": "object"})}},
)
async def map_manifold(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    steps: Annotated[int, Query(ge=2, le=50, description="quantiles per dimension")] = 15,
    format: PictureFormat = None,
) -> Response:
    """Read the manifold: the decoder's output on a grid of quantiles of the prior, as JSON, PNG or
    SVG. Only for models with a two-dimensional latent space (setting `d_latent` 2); 422 for others.
    """
    response_format, model = await _pictured_model(
        model_id, request, workspace, format, "manifolds"
    )
    content = await resources.inline.run(
        partial(draw_manifold, model=model, steps=steps, response_format=response_format)
    )
    return tagged(request, content, PICTURE_MEDIA_TYPES[response_format], {"Vary": "Accept"})


async def _pictured_model(
    model_id: str, request: Request, workspace: Workspace, format: str | None, what: str
) -> tuple[str, Model]:
    """Returns (response format, model) for a request for a dependency map or manifold. `what` is
    "dependency maps" or "manifolds", for the error if the model is one of a database."""
    response_format = choose_format(format, request.headers.get("Accept"), PICTURE_MEDIA_TYPES)
    model = await run_in_threadpool(workspace.models.get, model_id)
    require_table(model, what)
    return response_format, model


def _check_kind(kind: str, pointer: str = "?kind") -> None:
    if kind in MAPS_OF_MODEL:
        return
    if kind == "local":
        expected = "a POST request to this URL with the row"
        raise RequestError(Problem("a local map needs a row", pointer, expected=expected))
    message = f"{pointer[1:]} is {kind!r}"
    raise RequestError(unknown_name(message, kind, MAPS_OF_MODEL, pointer=pointer))
