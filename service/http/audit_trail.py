"""Audit log of authenticated requests that change, compute or download something."""

from __future__ import annotations

import asyncio
import logging
from urllib.parse import quote

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catalog.access.audit import Audit
from catalog.records import AuditedAction
from service.access import SAFE_METHODS
from service.http.observations import UNMATCHED, route_of
from service.http.problems import request_id

_DOWNLOADS = ("/content", "/artifact")
_MOST = 2000

_log = logging.getLogger("service")


class AuditTrail:
    """Middleware that appends a line to the audit log when the response to a request is complete.

    It must run inside `ResponseHeaders`, which sets the request id. It must run around
    `Observations`, which answers requests that a shutdown interrupts, so that these answers are
    audited. If the process is killed before the response is complete, the audit log does not
    contain the request; only the service's log may contain it.
    """

    def __init__(self, app: ASGIApp, audit: Audit) -> None:
        self.app = app
        self._audit = audit
        self._order = asyncio.Lock()  # first come, first served, so that lines stay in order

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_audited(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
            return
        status, made = 500, None  # the status of an unhandled exception

        async def send_noted(message: Message) -> None:
            nonlocal status, made
            if message["type"] == "http.response.start":
                status, made = message["status"], Headers(raw=message["headers"]).get("Location")
            await send(message)

        try:
            await self.app(scope, receive, send_noted)
        finally:
            if (
                "actor" in scope["state"] and route_of(scope) != UNMATCHED
            ):  # authenticated, to an existing route
                await self._write(_audited_action(Request(scope), status, made))

    async def _write(self, action: AuditedAction) -> None:
        """Appends a line to the audit log after the lines of earlier responses or, if the database
        does not respond, to the service's log."""

        async def append() -> None:
            async with self._order:
                await run_in_threadpool(self._audit.append, action)

        try:
            await asyncio.shield(append())
        except SQLAlchemyError:
            _log.exception("a line of the audit log is lost", extra={"deed": str(action)})


def note_connection(request: Request, connection: str) -> None:
    """Adds a connection to the line that the audit log will contain about this request.

    Args:
        connection: Name or id of the connection, which only the request's body contains.
    """
    request.state.subject = f"{request.scope['path']}?connection={quote(connection)}"


def _audited_action(request: Request, status: int, made: str | None) -> AuditedAction:
    return AuditedAction(
        workspace=request.state.workspace,
        actor=request.state.actor,
        action=f"{request.method} {route_of(request.scope)}",
        subject=str(getattr(request.state, "subject", request.scope["path"]))[:_MOST],
        made=made,
        address=None if request.client is None else request.client.host,
        status=status,
        request_id=request_id(request),
    )


def is_audited(method: str, path: str) -> bool:
    """Returns whether an API call changes or computes something, or downloads rows or a model.

    >>> is_audited("POST", "/v1/models"), is_audited("GET", "/v1/jobs/job_1")
    (True, False)
    """
    return path.startswith("/v1/") and (method not in SAFE_METHODS or path.endswith(_DOWNLOADS))
