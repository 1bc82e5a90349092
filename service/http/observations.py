"""What is seen of every request: its line in the log, its figures, its span."""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catalog.jobs.request_context import RequestContext, in_request
from runtime.logs import log_context
from runtime.traces import Span, Traces
from service.errors import CutOffError, ServiceError, StoppingError
from service.http import problems
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
            log_context(request=request_id),
            self.metrics.in_progress.track_inprogress(),
            self.traces.span(scope["method"], parent) as span,
            in_request(RequestContext(request_id, span.traceparent)),
        ):
            try:
                await self._answer(seen, receive)
            finally:
                self._tell(seen, span, request_id)

    async def _answer(self, seen: _Seen, receive: Receive) -> None:
        """Pass the request on.

        Raises:
            CutOffError: the answer had begun, and can not be ended.
        """
        try:
            await self.app(seen.scope, receive, seen.send)
        except asyncio.CancelledError as error:  # the server does that when its time is up
            if seen.has_begun:
                raise seen.cut_off_by(StoppingError()) from error
            refusal = problems.answer_known(Request(seen.scope), StoppingError())
            await refusal(seen.scope, receive, seen.send)
        except Exception as error:
            if not seen.has_begun:
                raise
            raise seen.cut_off_by(error) from error

    def _tell(self, seen: _Seen, span: Span, request_id: str) -> None:
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
            _log.warning("answer cut off", extra=fields | {"cut": seen.cut}, exc_info=seen.mistake)
            return
        level = logging.DEBUG if route in _OFTEN else logging.INFO
        _log.log(level, "request answered", extra=fields)


class _Seen:
    """An answer as it passes.

    Attributes:
        status: of the answer.
        mistake: an error of our own that cut it off.
    """

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope = scope
        self.status = 500  # what a failure becomes, outside of this
        self.mistake: Exception | None = None
        self._is_whole = False
        self._reason = "the client left"  # the one who cuts it off without a word
        self._send = send
        self._asked_at = time.perf_counter()
        self._answered_at: float | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._answered_at = time.perf_counter()
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._is_whole = True

    @property
    def has_begun(self) -> bool:
        """True once the answer's status is sent."""
        return self._answered_at is not None

    @property
    def cut(self) -> str | None:
        """Why the answer ended before its end; None where it did not."""
        return self._reason if self.has_begun and not self._is_whole else None

    def cut_off_by(self, error: Exception) -> CutOffError:
        """Note what cut the answer off, and let go of the connection."""
        known = _known(error)
        self.mistake = error if known is None else None
        lines = str(known or error).splitlines()
        self._reason = lines[0] if known and lines else f"{type(error).__name__}: {error}"
        return CutOffError(self._reason)

    def seconds_to_answer(self) -> float:
        answered_at = time.perf_counter() if self._answered_at is None else self._answered_at
        return answered_at - self._asked_at

    def seconds(self) -> float:
        return time.perf_counter() - self._asked_at


def route_of(scope: Scope) -> str:
    """The template of the path, such as `/v1/jobs/{job_id}`: few, whatever is asked."""
    return getattr(scope.get("route"), "path", None) or UNMATCHED


def _known(error: Exception) -> Exception | None:
    """The error itself where it is raised on purpose; the framework wraps those it would answer."""
    causes = (error, error.__cause__ if isinstance(error, RuntimeError) else None)
    named: tuple[type[Exception], ...] = (ServiceError, *problems.KINDS)
    return next((cause for cause in causes if isinstance(cause, named)), None)
