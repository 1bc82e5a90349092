"""Writes a log line, metrics and a trace span for each request."""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catalog.jobs.jobs import RequestContext, in_request
from runtime.logs import log_context
from runtime.traces import Span, Traces
from service.errors import CutOffError, ServiceError, StoppingError
from service.http import problems
from service.metrics import Metrics

UNMATCHED = "unmatched"

_log = logging.getLogger("service")
_OFTEN = ("/healthz", "/readyz", "/metrics")


class Observations:
    """Middleware that logs, counts and times each request, and traces it as a span.

    It must run around the middleware that refuses requests, so that refused requests are observed,
    too. It must run inside `ResponseHeaders`, which sets the request id, and inside `AuditTrail`.
    Jobs that a request creates store its request id and trace id.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, traces: Traces) -> None:
        self.app = app
        self.metrics = metrics
        self.traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = scope["state"]["request_id"]
        parent = Headers(scope=scope).get("traceparent")
        seen = _ObservedAnswer(scope, send)
        with (
            log_context(request=request_id),
            self.metrics.in_progress.track_inprogress(),
            self.traces.span(scope["method"], parent) as span,
            in_request(RequestContext(request_id, span.traceparent)),
        ):
            try:
                await self._answer(seen, receive)
            finally:
                self._record(seen, span, request_id)

    async def _answer(self, seen: _ObservedAnswer, receive: Receive) -> None:
        try:
            await self.app(seen.scope, receive, seen.send)
        except asyncio.CancelledError as error:  # raised when the shutdown time is over
            if seen.has_begun:
                raise seen.cut_off_by(StoppingError()) from error
            refusal = problems.answer_known(Request(seen.scope), StoppingError())
            await refusal(seen.scope, receive, seen.send)
        except Exception as error:
            if not seen.has_begun:
                raise
            raise seen.cut_off_by(error) from error

    def _record(self, seen: _ObservedAnswer, span: Span, request_id: str) -> None:
        method, route = seen.scope["method"], route_of(seen.scope)
        self.metrics.answered(method, route, seen.status, seen.seconds_to_answer())
        span.rename(f"{method} {route}")
        span.describe(request=request_id, route=route, status=seen.status)
        if seen.status >= 500 or seen.cut is not None:
            span.fail(seen.cut or str(seen.status))
        fields = {
            "method": method,
            "path": seen.scope["path"],
            "status": seen.status,
            "seconds": round(seen.seconds(), 4),
        }
        if seen.cut is not None:
            _log.warning(
                "answer cut off", extra=fields | {"cut": seen.cut}, exc_info=seen.unexpected_error
            )
            return
        level = logging.DEBUG if route in _OFTEN else logging.INFO
        _log.log(level, "request answered", extra=fields)


class _ObservedAnswer:
    """Sends a response. Records its status and times and, if it is cut off, the reason.

    Attributes:
        status: Status of the response.
        unexpected_error: Exception that cut the response off and whose traceback is logged. None
            if there was no exception, or only one of a class for which the service has a documented
            response (`ServiceError` and the classes in `problems.KINDS`).
    """

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope = scope
        self.status = 500  # the status of an unhandled exception
        self.unexpected_error: Exception | None = None
        self._is_whole = False
        self._reason = "the client left"  # a disconnect raises no exception
        self._send = send
        self._asked_at = time.perf_counter()
        self._answered_at: float | None = None

    async def send(self, message: Message) -> None:
        """Sends an ASGI message. Records when the response begins and whether it is complete."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._answered_at = time.perf_counter()
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._is_whole = True

    @property
    def has_begun(self) -> bool:
        """Whether the status and headers have been sent."""
        return self._answered_at is not None

    @property
    def cut(self) -> str | None:
        """Reason why the response was cut off; None if it was not."""
        return self._reason if self.has_begun and not self._is_whole else None

    def cut_off_by(self, error: Exception) -> CutOffError:
        """Records why the response is cut off. Returns the exception that closes the connection."""
        causes = (error, error.__cause__ if isinstance(error, RuntimeError) else None)
        documented: tuple[type[Exception], ...] = (ServiceError, *problems.KINDS)
        known = next((cause for cause in causes if isinstance(cause, documented)), None)
        self.unexpected_error = error if known is None else None
        lines = str(known or error).splitlines()
        self._reason = lines[0] if known and lines else f"{type(error).__name__}: {error}"
        return CutOffError(self._reason)

    def seconds_to_answer(self) -> float:
        """Returns the seconds from the request until its response began, or else until now."""
        answered_at = time.perf_counter() if self._answered_at is None else self._answered_at
        return answered_at - self._asked_at

    def seconds(self) -> float:
        """Returns the seconds since the request."""
        return time.perf_counter() - self._asked_at


def route_of(scope: Scope) -> str:
    """Returns the path template of the request's route (`/v1/jobs/{job_id}`), or "unmatched"."""
    return getattr(scope.get("route"), "path", None) or UNMATCHED
