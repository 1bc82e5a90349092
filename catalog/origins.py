"""Where a job comes from: the request that asked for it, and the trace that it belongs to.

The service says it for the time of a request; whatever is queued within carries it to the worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """A request.

    Attributes:
        request_id: as the answer's X-Request-ID says it.
        traceparent: the request's span (W3C Trace Context), where it is traced.
    """

    request_id: str | None = None
    traceparent: str | None = None


_NOBODY = Origin()
_origin: ContextVar[Origin] = ContextVar("origin", default=_NOBODY)


def origin() -> Origin:
    """The request that is being answered; one of nobody outside of all requests."""
    return _origin.get()


@contextmanager
def coming_from(request: Origin) -> Iterator[None]:
    """What is queued within comes from this request."""
    token = _origin.set(request)
    try:
        yield
    finally:
        _origin.reset(token)
