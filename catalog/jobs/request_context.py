"""Request context of a job: the request that queued it, and its trace.

The service sets it for the duration of a request; jobs queued in it carry it to the worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class RequestContext:
    """A request, as the records identify it.

    Attributes:
        request_id: The X-Request-ID of the response.
        traceparent: The request's span (W3C Trace Context), if it is traced.
    """

    request_id: str | None = None
    traceparent: str | None = None


_OUTSIDE = RequestContext()
_context: ContextVar[RequestContext] = ContextVar("request context", default=_OUTSIDE)


def request_context() -> RequestContext:
    """Returns the current request; an empty context outside of requests."""
    return _context.get()


@contextmanager
def in_request(context: RequestContext) -> Iterator[None]:
    """Jobs queued in this block belong to this request."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)
