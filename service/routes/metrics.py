"""Endpoint that returns the metrics for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from service.resources import Shared

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def show_metrics(resources: Shared) -> Response:
    """Read the metrics in the text format of Prometheus."""
    return Response(generate_latest(resources.metrics.registry), media_type=CONTENT_TYPE_LATEST)
