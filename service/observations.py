"""What is seen of every request: its line in the log, its figures, its span."""

from __future__ import annotations

import logging
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catalog.origins import Origin, coming_from
from runtime.logs import telling
from runtime.traces import Span, Traces
from service.metrics import Metrics

UNMATCHED = "unmatched"

_log = logging.getLogger("service")
_OFTEN = ("/healthz", "/readyz", "/metrics")


class Observations:
    """Middleware around everything but the naming of requests. Jobs asked within carry its ids."""

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
        seen = _Seen(scope, send)
        with (
            telling(request=request_id),
            self.metrics.in_progress.track_inprogress(),
            self.traces.span(scope["method"], parent) as span,
            coming_from(Origin(request_id, span.traceparent)),
        ):
            try:
                await self.app(scope, receive, seen.send)
            finally:
                self._tell(seen, span, request_id)

    def _tell(self, seen: _Seen, span: Span, request_id: str) -> None:
        method, route = seen.scope["method"], route_of(seen.scope)
        self.metrics.answered(method, route, seen.status, seen.seconds_to_answer())
        span.rename(f"{method} {route}")
        span.tell(request=request_id, route=route, status=seen.status)
        if seen.status >= 500:
            span.fail(str(seen.status))
        level = logging.DEBUG if route in _OFTEN else logging.INFO
        told = {
            "method": method,
            "path": seen.scope["path"],
            "status": seen.status,
            "seconds": round(seen.seconds(), 4),
        }
        _log.log(level, "request answered", extra=told)


class _Seen:
    """An answer as it passes."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope = scope
        self.status = 500  # what a failure becomes, outside of this
        self._send = send
        self._asked_at = time.perf_counter()
        self._answered_at: float | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._answered_at = time.perf_counter()
        await self._send(message)

    def seconds_to_answer(self) -> float:
        answered_at = time.perf_counter() if self._answered_at is None else self._answered_at
        return answered_at - self._asked_at

    def seconds(self) -> float:
        return time.perf_counter() - self._asked_at


def route_of(scope: Scope) -> str:
    """The template of the path, such as `/v1/jobs/{job_id}`: few, whatever is asked."""
    return getattr(scope.get("route"), "path", None) or UNMATCHED
