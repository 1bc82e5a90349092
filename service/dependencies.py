"""Dependencies: which columns of a model move together, as Kendall's-tau maps."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from catalog.records import Model
from gcvae.errors import Problem
from gcvae.seeds import MAX_SEED
from service.access import Workspace
from service.bodies import NewMapBody
from service.errors import NotOfferedError, RequestError
from service.etags import tagged
from service.negotiation import choose_form
from service.resources import Resources, Shared
from service.synthesizers import require_ready

KINDS = ("local", "expected", "within", "between", "total", "data", "difference")
OFFERED_KINDS = ("expected", "total", "data")
MEDIA_TYPES = {"json": "application/json", "png": "image/png", "svg": "image/svg+xml"}

router = APIRouter(tags=["dependencies"])

_MAP: dict[str, Any] = {
    "type": "object",
    "required": ["columns", "kind", "tau", "unsigned", "measure", "notes"],
    "properties": {
        "columns": {"type": "array", "items": {"type": "string"}},
        "kind": {"type": "string", "enum": list(OFFERED_KINDS)},
        "tau": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        "unsigned": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        "measure": {"type": "string"},
        "notes": {"type": "array", "items": {"type": "string"}},
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
    kind: Annotated[str, Query(description=f"one of {', '.join(OFFERED_KINDS)}")] = "expected",
    format: Annotated[str | None, Query(description="json, png or svg; else by Accept")] = None,
    seed: Annotated[int, Query(ge=0, le=MAX_SEED)] = 0,
) -> Response:
    """The Kendall's-tau map: JSON, PNG or SVG, by `format` or by `Accept`."""
    check_kind(kind)
    form = choose_form(format, request.headers.get("Accept"), MEDIA_TYPES)
    model = await run_in_threadpool(resources.catalog.models.get, model_id, workspace=workspace)
    require_ready(model)
    content = await resources.inline.run(partial(draw_map, resources, model, kind, form, seed))
    return tagged(request, content, MEDIA_TYPES[form], {"Vary": "Accept"})


@router.post(
    "/v1/models/{model_id}/dependencies",
    response_class=Response,
    summary="Map At Row (not offered yet)",
)
def map_at_row(
    model_id: str, body: NewMapBody, resources: Shared, workspace: Workspace
) -> Response:
    """The local map at a given row. Not offered in this version: every row is refused with 422."""
    require_ready(resources.catalog.models.get(model_id, workspace=workspace))
    raise _not_offered("local", "/")


def check_kind(kind: str) -> None:
    """Let the kinds that there are pass.

    Raises:
        NotOfferedError: the kind is planned, but not here yet.
        RequestError: there is no such kind.
    """
    if kind in OFFERED_KINDS:
        return
    if kind in KINDS:
        raise _not_offered(kind, "?kind")
    expected = f"one of {', '.join(OFFERED_KINDS)}"
    raise RequestError(Problem(f"kind is {kind!r}", "?kind", expected=expected))


def draw_map(resources: Resources, model: Model, kind: str, form: str, seed: int) -> bytes:
    """The map as JSON text or as a picture; kept, since the same question gets the same map."""
    key = (model.id, str(model.artifact_sha256), kind, form, str(seed))
    return resources.maps.get(key, partial(_draw_map, resources, model, kind, form, seed))


def _draw_map(resources: Resources, model: Model, kind: str, form: str, seed: int) -> bytes:
    found = resources.synthesizers.get(model).dependencies(kind, seed=seed)
    if form == "json":
        return json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False).encode()
    return found.picture(form)


def _not_offered(kind: str, pointer: str) -> NotOfferedError:
    expected = f"one of {', '.join(OFFERED_KINDS)}"
    problem = Problem(f"maps of kind {kind!r} are not offered", pointer, expected=expected)
    return NotOfferedError(problem, offered=OFFERED_KINDS)
