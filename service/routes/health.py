"""Whether the service lives, and whether what it stands on answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi import APIRouter

from service.bodies import HealthBody, ReadinessBody
from service.errors import NotReadyError
from service.resources import Shared

CHECK_SECONDS = 1.5

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def tell_alive() -> HealthBody:
    """Alive: the process answers."""
    return HealthBody()


@router.get("/readyz")
async def tell_ready(resources: Shared) -> ReadinessBody:
    """Ready: database, store and broker answer; each is named. Else a 503, with `checks` too.

    Raises:
        NotReadyError: one does not.
    """
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


async def _check(ping: Callable[[], None]) -> str:
    try:
        await asyncio.wait_for(asyncio.to_thread(ping), CHECK_SECONDS)
    except TimeoutError:
        return f"no response within {CHECK_SECONDS:g} s"
    except Exception as error:  # whatever it is, it is the answer to the question
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return "ok"
