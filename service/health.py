"""Whether the service lives, and whether what it stands on answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi import APIRouter, Response

from service.bodies import HealthBody, ReadinessBody
from service.resources import Shared

CHECK_SECONDS = 3.0

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def tell_alive() -> HealthBody:
    """Alive: the process answers."""
    return HealthBody()


@router.get("/readyz", responses={503: {"model": ReadinessBody}})
async def tell_ready(response: Response, resources: Shared) -> ReadinessBody:
    """Ready: database, store and broker answer; each is named."""
    pings = {
        "database": resources.catalog.ping,
        "store": resources.store.ping,
        "broker": resources.dispatcher.ping,
    }
    found = await asyncio.gather(*(_check(ping) for ping in pings.values()))
    checks = dict(zip(pings, found, strict=True))
    is_ready = all(answer == "ok" for answer in found)
    response.status_code = 200 if is_ready else 503
    return ReadinessBody(status="ready" if is_ready else "not ready", checks=checks)


async def _check(ping: Callable[[], None]) -> str:
    try:
        await asyncio.wait_for(asyncio.to_thread(ping), CHECK_SECONDS)
    except TimeoutError:
        return f"no answer within {CHECK_SECONDS:g} s"
    except Exception as error:  # whatever it is, it is the answer to the question
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return "ok"
