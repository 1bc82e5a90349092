"""What becomes a line of the audit log: changes, computations and downloads of who was let in."""

from __future__ import annotations

import asyncio
import logging

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catalog.access.audit import Audit, Deed
from service.access import SAFE_METHODS
from service.http.observations import UNMATCHED, route_of
from service.http.problems import request_id

_DOWNLOADS = ("/content", "/artifact")
_MOST = 2000

_log = logging.getLogger("service")


class AuditTrail:
    """Middleware around what observes requests, inside what names them.

    A line is written when its answer is over, so that it knows the outcome: a process that is
    killed in between leaves the request's line in the log of the service alone.
    """

    def __init__(self, app: ASGIApp, audit: Audit) -> None:
        self.app = app
        self._audit = audit
        self._turn = asyncio.Lock()  # it is given in the order in which it was asked for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_audited(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
            return
        status, made = 500, None  # what a failure becomes, outside of this

        async def send_noted(message: Message) -> None:
            nonlocal status, made
            if message["type"] == "http.response.start":
                status, made = message["status"], Headers(raw=message["headers"]).get("Location")
            await send(message)

        try:
            await self.app(scope, receive, send_noted)
        finally:
            if "actor" in scope["state"] and route_of(scope) != UNMATCHED:  # let in, to a call
                await self._write(_deed(Request(scope), status, made))

    async def _write(self, deed: Deed) -> None:
        """Write a deed behind those whose answers were over before: threads would race."""
        try:
            await asyncio.shield(self._append(deed))
        except SQLAlchemyError:
            _log.exception("a line of the audit log is lost", extra={"deed": str(deed)})

    async def _append(self, deed: Deed) -> None:
        async with self._turn:
            await run_in_threadpool(self._audit.append, deed)


def _deed(request: Request, status: int, made: str | None) -> Deed:
    return Deed(
        workspace=request.state.workspace,
        actor=request.state.actor,
        action=f"{request.method} {route_of(request.scope)}",
        subject=request.scope["path"][:_MOST],
        made=made,
        address=None if request.client is None else request.client.host,
        status=status,
        request_id=request_id(request),
    )


def is_audited(method: str, path: str) -> bool:
    """True of calls that change or compute something, or carry rows or a model away.

    >>> is_audited("POST", "/v1/models"), is_audited("GET", "/v1/jobs/job_1")
    (True, False)
    """
    return path.startswith("/v1/") and (method not in SAFE_METHODS or path.endswith(_DOWNLOADS))
