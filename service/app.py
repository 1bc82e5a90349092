"""Creates the FastAPI application: its routes, middleware, error handlers and shared resources."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any

from fastapi import Depends, FastAPI

from catalog.job_kinds import JobKind
from service.access import get_workspace
from service.errors import ProcessDiedError
from service.http import documentation, problems
from service.http.audit_trail import AuditTrail
from service.http.body_limits import BodyLimits
from service.http.gate import Gate
from service.http.observations import Observations
from service.http.query_parameters import refuse_unknown_parameters
from service.http.response_headers import ResponseHeaders
from service.keyring import KeyRing
from service.metrics import Metrics
from service.resources import Resources, make_resources
from service.routes import (
    audit,
    connections,
    datasets,
    dependencies,
    health,
    imports,
    jobs,
    presets,
    privacy_ledgers,
    schedules,
    sessions,
    sign_on,
    webhooks,
    work,
)
from service.schedule_runs import ScheduleRunner
from service.settings import ServiceSettings
from service.site import guide_pages, pages
from service.webhook_delivery import Deliverer

_PRELOAD_AFTER_SECONDS = 0.3
_LAG_INTERVAL_SECONDS = 0.1

log = logging.getLogger("service")


def create_app(settings: ServiceSettings) -> FastAPI:
    """Returns the complete application. It opens its resources now and closes them at shutdown."""
    shared = make_resources(settings)
    app = FastAPI(
        title="gcvae",
        version=version("gcvae"),
        summary="Gaussian copula variational autoencoders for tables",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        responses=_PROBLEM_RESPONSE,
    )
    app.state.resources = shared
    app.state.key_ring = KeyRing(
        shared.catalog.keys,
        shared.catalog.sessions,
        has_sign_on=bool(settings.oidc_issuer),
    )
    checks = [Depends(get_workspace), Depends(refuse_unknown_parameters)]
    for part in (
        jobs,  # first, because jobs are polled most often
        datasets,
        *(import_module(f"service.routes.{kind.collection}") for kind in JobKind),
        imports,
        dependencies,
        presets,
        privacy_ledgers,
        audit,
        sessions,
        connections,
        webhooks,
        schedules,
        work,
    ):
        app.include_router(part.router, dependencies=checks)
    app.include_router(sign_on.router, dependencies=[Depends(refuse_unknown_parameters)])
    app.include_router(health.router)
    documentation.install(app)
    guide_pages.install(app)
    pages.install(app)
    problems.install(app)
    app.add_middleware(BodyLimits, settings=settings)
    app.add_middleware(Gate, settings=settings, ring=app.state.key_ring)
    app.add_middleware(Observations, metrics=shared.metrics, traces=shared.traces)
    app.add_middleware(AuditTrail, audit=shared.catalog.audit)
    app.add_middleware(ResponseHeaders)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Runs background tasks while the application runs, and closes its resources afterwards."""
    resources: Resources = app.state.resources
    settings = resources.settings
    background = [
        asyncio.create_task(_watch_lag(resources.metrics)),
        asyncio.create_task(ScheduleRunner(resources).run()),
    ]
    if settings.preload_torch:
        background.append(asyncio.create_task(_warm(resources)))
    if settings.outside_hosts:
        seconds = settings.outside_timeout_seconds, settings.webhook_interval_seconds
        deliverer = Deliverer(resources.catalog.outbox, resources.allowed_hosts, *seconds)
        background.append(asyncio.create_task(deliverer.run()))
    yield
    for task in background:
        task.cancel()
    if settings.outside_hosts:
        await resources.allowed_hosts.close()
    if resources.sign_on is not None:
        await resources.sign_on.close()
    # In a thread, so that the event loop can still log requests that are cut off meanwhile.
    await asyncio.to_thread(resources.close)


async def _warm(resources: Resources) -> None:
    """Starts a first child process that runs models. Importing torch takes seconds, so this begins
    only after the port is open."""
    await asyncio.sleep(_PRELOAD_AFTER_SECONDS)
    try:
        await resources.inline.warm()
    except ProcessDiedError:
        log.exception("no process of inline work starts; requests that need one will fail")


async def _watch_lag(metrics: Metrics) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LAG_INTERVAL_SECONDS
        await asyncio.sleep(_LAG_INTERVAL_SECONDS)
        metrics.lagged(max(0.0, loop.time() - due))


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "instance", "request_id"],
    "properties": {
        "type": _text("stable identifier for programs"),
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "request_id": {"type": "string"},
        "limit": {"type": "number"},
        "job_id": {
            "type": ["string", "null"],
            "description": "of a missing report: the job that makes it",
        },
        "is_under_way": {
            "type": "boolean",
            "description": "whether that job is waiting or running",
        },
        "setting": _text("the setting that changes the limit"),
        "advice": _text("how to proceed"),
        "sign_on": _text("where a page begins to sign in with the provider, if there is one"),
        "resource": _text("kind of the missing resource: dataset, model, job, …"),
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "message": {"type": "string"},
                    "pointer": _text(
                        "JSON pointer into the body or the form, or `?` and a query parameter"
                    ),
                    "parameter": _text("a header or a part of the path"),
                    "line": {"type": "integer"},
                    "row": {
                        "type": "integer",
                        "description": "of a table without lines, from 0",
                    },
                    "column": {"type": "string"},
                    "expected": {"type": "string"},
                },
            },
        },
    },
}
_PROBLEM_RESPONSE: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem (RFC 9457)",
        "content": {problems.MEDIA_TYPE: {"schema": _PROBLEM}},
    }
}
