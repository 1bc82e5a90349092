"""The HTTP request during which a job is queued, so that logs and traces of the job refer to it.

The service sets the context for the duration of a request; jobs that are queued during the request
store it for the worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class RequestContext:
    """Identity of an HTTP request in logs and traces; both members are None outside of requests.

    Attributes:
        request_id: The X-Request-ID of the response.
        traceparent: The request's trace span (W3C Trace Context); None if it is not traced.
    """

    request_id: str | None = None
    traceparent: str | None = None


_OUTSIDE = RequestContext()
_context: ContextVar[RequestContext] = ContextVar("request context", default=_OUTSIDE)


def request_context() -> RequestContext:
    """Returns the identity of the current HTTP request; an empty context outside of requests."""
    return _context.get()


@contextmanager
def in_request(context: RequestContext) -> Iterator[None]:
    """Context manager: jobs that are queued within the block refer to this HTTP request."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)
