"""The latent space of a model: what the decoder makes of its plane."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from service.access import Workspace
from service.http.etags import tagged
from service.http.negotiation import choose_form
from service.inline.synthesizers import require_table
from service.inline.work import draw_manifold
from service.resources import Shared

PICTURE_TYPES = {"json": "application/json", "png": "image/png", "svg": "image/svg+xml"}

router = APIRouter(tags=["latent space"])

_PICTURE = {"schema": {"type": "string", "format": "binary"}}


@router.get(
    "/v1/models/{model_id}/manifold",
    response_class=Response,
    responses={
        200: {
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "image/png": _PICTURE,
                "image/svg+xml": _PICTURE,
            }
        }
    },
)
async def map_manifold(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    steps: Annotated[int, Query(ge=2, le=50, description="quantiles per dimension")] = 15,
    format: Annotated[str | None, Query(description="json, png or svg; default: by Accept")] = None,
) -> Response:
    """What the decoder makes of a grid over the prior's quantiles: JSON, PNG or SVG. Models of a
    two-dimensional latent space (`d_latent` 2) only; others are refused with 422.
    """
    form = choose_form(format, request.headers.get("Accept"), PICTURE_TYPES)
    model = await run_in_threadpool(workspace.models.get, model_id)
    require_table(model, "manifolds")
    content = await resources.inline.run(
        partial(draw_manifold, model=model, steps=steps, form=form)
    )
    return tagged(request, content, PICTURE_TYPES[form], {"Vary": "Accept"})
