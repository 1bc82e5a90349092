"""The request context of a job: the request that asked for it, and the trace that it belongs to.

The service sets it for the time of a request; whatever is queued within carries it to the worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class RequestContext:
    """A request, as the records name it.

    Attributes:
        request_id: as the answer's X-Request-ID says it.
        traceparent: the request's span (W3C Trace Context), where it is traced.
    """

    request_id: str | None = None
    traceparent: str | None = None


_OUTSIDE = RequestContext()
_context: ContextVar[RequestContext] = ContextVar("request context", default=_OUTSIDE)


def request_context() -> RequestContext:
    """The request that is being answered; an empty one outside of all requests."""
    return _context.get()


@contextmanager
def in_request(context: RequestContext) -> Iterator[None]:
    """What is queued within comes from this request."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)
