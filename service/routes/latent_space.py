"""Endpoint that returns the decoder's output over a two-dimensional latent space (the manifold)."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from service.access import Workspace
from service.http.etags import tagged
from service.http.negotiation import PICTURE_MEDIA_TYPES, PictureFormat, picture_content
from service.inline.work import draw_manifold
from service.resources import Shared
from service.routes.dependencies import pictured_model

router = APIRouter(tags=["latent space"])


@router.get(
    "/v1/models/{model_id}/manifold",
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
    """Read the decoder's output on a grid of quantiles of the prior, as JSON, PNG or SVG. Only for
    models with a two-dimensional latent space (setting `d_latent` 2); 422 for all other models.
    """
    form, model = await pictured_model(model_id, request, workspace, format, "manifolds")
    content = await resources.inline.run(
        partial(draw_manifold, model=model, steps=steps, form=form)
    )
    return tagged(request, content, PICTURE_MEDIA_TYPES[form], {"Vary": "Accept"})
