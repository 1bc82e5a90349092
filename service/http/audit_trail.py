"""What becomes a line of the audit log: changes, computations and downloads of who was let in."""

from __future__ import annotations

import asyncio
import logging

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Send

from catalog.audit import Audit, Deed
from service.http.observations import route_of
from service.http.problems import request_id

_READING = ("GET", "HEAD", "OPTIONS")
_DOWNLOADS = ("/content", "/artifact")
_MOST = 2000

_log = logging.getLogger("service")


class Trail:
    """The line of one request, from what passes on the way to its answer.

    Lines are written when the answer is over, so that they know its outcome: a process that is
    killed in between leaves the request's line in the log of the service alone.
    """

    def __init__(self, audit: Audit, request: Request, workspace: str, actor: str) -> None:
        self._audit = audit
        self._request = request
        self._workspace = workspace
        self._actor = actor
        self._status = 500  # what a failure becomes, outside of this
        self._made: str | None = None

    def passing(self, send: Send) -> Send:
        """`send`, which takes note of the answer."""

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._status = message["status"]
                self._made = Headers(raw=message["headers"]).get("Location")
            await send(message)

        return send_noted

    async def write(self) -> None:
        """Write the line; where the database does not take it, the log says so."""
        deed = self._deed()
        try:
            await asyncio.shield(run_in_threadpool(self._audit.append, deed))
        except SQLAlchemyError:
            _log.exception("a line of the audit log is lost", extra={"deed": str(deed)})

    def _deed(self) -> Deed:
        request = self._request
        return Deed(
            workspace=self._workspace,
            actor=self._actor,
            action=f"{request.method} {route_of(request.scope)}",
            subject=request.url.path[:_MOST],
            made=self._made,
            address=None if request.client is None else request.client.host,
            status=self._status,
            request_id=request_id(request),
        )


def is_audited(method: str, path: str) -> bool:
    """True of calls that change or compute something, or carry rows or a model away.

    >>> is_audited("POST", "/v1/models"), is_audited("GET", "/v1/jobs/job_1")
    (True, False)
    """
    return path.startswith("/v1/") and (method not in _READING or path.endswith(_DOWNLOADS))
