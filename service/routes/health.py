"""Endpoints by which a load balancer or operator checks and measures the service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi import APIRouter, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from service.bodies import HealthBody, ReadinessBody
from service.errors import NotReadyError
from service.resources import Shared

CHECK_SECONDS = 1.5
"""Time in which a server has to respond to a check."""

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def tell_alive() -> HealthBody:
    """Check that the process responds."""
    return HealthBody()


@router.get("/readyz")
async def tell_ready(resources: Shared) -> ReadinessBody:
    """Check that the database, the store and the broker (queue of jobs) respond. If one does not,
    the response is 503, and `checks` contains the reason."""
    pings = {
        "database": resources.catalog.ping,
        "store": resources.store.ping,
        "broker": resources.dispatcher.ping,
    }
    found = await asyncio.gather(*(_check(ping) for ping in pings.values()))
    checks = dict(zip(pings, found, strict=True))
    if any(answer != "ok" for answer in found):
        raise NotReadyError(checks)
    return ReadinessBody(status="ready", checks=checks)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def show_metrics(resources: Shared) -> Response:
    """Read the metrics in the text format of Prometheus."""
    return Response(generate_latest(resources.metrics.registry), media_type=CONTENT_TYPE_LATEST)


async def _check(ping: Callable[[], None]) -> str:
    try:
        await asyncio.wait_for(asyncio.to_thread(ping), CHECK_SECONDS)
    except TimeoutError:
        return f"no response within {CHECK_SECONDS:g} s"
    except Exception as error:  # reported as the result of the check
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return "ok"
