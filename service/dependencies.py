"""Dependencies: which columns of a model move together, as Kendall's-tau maps."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from catalog.records import Model
from gcvae.errors import Problem
from gcvae.map_notes import KINDS, MAPS_OF_MODEL
from gcvae.seeds import MAX_SEED
from service.access import Workspace
from service.bodies import NewMapBody
from service.errors import RequestError
from service.etags import tagged
from service.negotiation import choose_form
from service.resources import Resources, Shared
from service.synthesizers import require_ready

if TYPE_CHECKING:
    from gcvae.dependence import DependencyMap

MEDIA_TYPES = {"json": "application/json", "png": "image/png", "svg": "image/svg+xml"}

router = APIRouter(tags=["dependencies"])

_MATRIX = {"type": "array", "items": {"type": "array", "items": {"type": ["number", "null"]}}}
_MAP: dict[str, Any] = {
    "type": "object",
    "required": ["columns", "kind", "tau", "unsigned", "measure", "notes", "order"],
    "properties": {
        "columns": {"type": "array", "items": {"type": "string"}},
        "kind": {"type": "string", "enum": list(KINDS)},
        "tau": _MATRIX,
        "unsigned": _MATRIX,
        "measure": {"type": "string"},
        "notes": {"type": "array", "items": {"type": "string"}},
        "order": {"type": "array", "items": {"type": "integer"}},
        "spread": _MATRIX,
        "standard_error": _MATRIX,
    },
}
_PICTURE = {"schema": {"type": "string", "format": "binary"}}
_MAP_ANSWER = {
    "content": {
        "application/json": {"schema": _MAP},
        "image/png": _PICTURE,
        "image/svg+xml": _PICTURE,
    }
}


@router.get(
    "/v1/models/{model_id}/dependencies",
    response_class=Response,
    responses={200: _MAP_ANSWER},
)
async def map_dependencies(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    kind: Annotated[str, Query(description=f"one of {', '.join(MAPS_OF_MODEL)}")] = "expected",
    format: Annotated[str | None, Query(description="json, png or svg; else by Accept")] = None,
    seed: Annotated[int, Query(ge=0, le=MAX_SEED)] = 0,
) -> Response:
    """The dependency map of a kind: JSON, PNG or SVG, by `format` or by `Accept`. Its notes say
    what it means, and what it can not show. A column with one value only has null with the others.
    """
    check_kind(kind)
    form = choose_form(format, request.headers.get("Accept"), MEDIA_TYPES)
    model = await run_in_threadpool(resources.catalog.models.get, model_id, workspace=workspace)
    require_ready(model)
    content = await resources.inline.run(partial(draw_map, resources, model, kind, form, seed))
    return tagged(request, content, MEDIA_TYPES[form], {"Vary": "Accept"})


@router.post(
    "/v1/models/{model_id}/dependencies",
    response_class=Response,
    responses={200: _MAP_ANSWER},
)
async def map_at_row(
    model_id: str,
    body: NewMapBody,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    format: Annotated[str | None, Query(description="json, png or svg; else by Accept")] = None,
) -> Response:
    """The `local` map: of the decoder copula, averaged over the posterior of a given row (blank
    cells are integrated out), or at a given z.
    """
    form = choose_form(format, request.headers.get("Accept"), MEDIA_TYPES)
    model = await run_in_threadpool(resources.catalog.models.get, model_id, workspace=workspace)
    require_ready(model)
    content = await resources.inline.run(partial(draw_local_map, resources, model, body, form))
    return Response(content, media_type=MEDIA_TYPES[form], headers={"Vary": "Accept"})


def check_kind(kind: str) -> None:
    """Let the kinds pass that are of the whole model.

    Raises:
        RequestError: there is no such kind, or it is of one row.
    """
    if kind in MAPS_OF_MODEL:
        return
    message = f"kind is {kind!r}"
    expected = f"one of {', '.join(MAPS_OF_MODEL)}"
    if kind == "local":
        message, expected = "a local map is of one row", "a POST to this address, with the row"
    raise RequestError(Problem(message, "?kind", expected=expected))


def draw_map(resources: Resources, model: Model, kind: str, form: str, seed: int) -> bytes:
    """The map as JSON text or as a picture; kept, since the same question gets the same map."""
    key = (model.id, str(model.artifact_sha256), kind, str(seed))
    make = partial(_make_map, resources, model, kind, seed)
    made = resources.maps.get(key, make)
    return resources.pictures.get((*key, form), partial(_in_form, made, form))


def draw_local_map(resources: Resources, model: Model, body: NewMapBody, form: str) -> bytes:
    """The map at a row or at a z, as JSON text or as a picture.

    Raises:
        RequestError: both or neither are given.
        InputError: z has another number of dimensions.
        TableError: a cell can not be read, or the row is impossible.
        UnknownColumnError: a column that the model does not have.
    """
    if (body.row is None) == (body.z is None):
        problem = Problem("a local map is of one place", "/row", expected="either a row or a z")
        raise RequestError(problem)
    synthesizer = resources.synthesizers.get(model)
    found = synthesizer.dependencies("local", seed=body.seed, row=body.row, z=body.z)
    return _in_form(found, form)


def _make_map(resources: Resources, model: Model, kind: str, seed: int) -> DependencyMap:
    return resources.synthesizers.get(model).dependencies(kind, seed=seed)


def _in_form(found: DependencyMap, form: str) -> bytes:
    if form == "json":
        return json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False).encode()
    return found.picture(form)
