"""Exceptions of the service. Only `service/http/problems.py` maps them to HTTP responses.

Some errors have the attribute `advice`, a sentence that tells the client how to proceed; the
response contains this sentence. The message of all other errors already says how to proceed.
"""

from __future__ import annotations

from gcvae.errors import Problem
from service.settings import variable

_SHEET = 'save the sheet as "CSV UTF-8" and send that as text/csv'


class ServiceError(Exception):
    """Base class of all exceptions of the service except `CutOffError`."""


class PreconditionError(ServiceError):
    """A change is refused, because the resource has changed since the client read it (If-Match)."""


class RequestError(ServiceError):
    """The request is not valid; `problems` describes each error and its location in the request."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        """Returns the first problem on one line."""
        return str(self.problems[0])


class MediaTypeError(ServiceError):
    """The endpoint does not accept bodies of this media type; `readable` lists those it accepts."""

    def __init__(self, given: str | None, readable: tuple[str, ...]) -> None:
        stated = "has no Content-Type" if given is None else f"has the media type {given!r}"
        way_out = f"; {_SHEET}" if given is not None and "spreadsheet" in given.lower() else ""
        super().__init__(f"the body {stated}; this call accepts {', '.join(readable)}{way_out}")
        self.readable = readable


class NotAcceptableError(ServiceError):
    """The client accepts no media type of the endpoint's responses; `writable` lists them."""

    def __init__(self, accept: str, writable: tuple[str, ...]) -> None:
        super().__init__(f"Accept is {accept!r}; this call can return {', '.join(writable)}")
        self.writable = writable


class NotOfferedError(ServiceError):
    """The request is valid but not supported; `offered` lists what is supported instead."""

    def __init__(self, problem: Problem, offered: tuple[str, ...] = ()) -> None:
        super().__init__(problem)
        self.problems = (problem,)
        self.offered = offered

    def __str__(self) -> str:
        """Returns the problem on one line."""
        return str(self.problems[0])


class LimitError(ServiceError):
    """A limit of this service is exceeded.

    Attributes:
        limit: Value of the limit.
        setting: Environment variable that sets the limit.
        problems: Each part of the request that exceeds the limit, with its location; may be empty.
    """

    def __init__(self, what: str, limit: float, field: str, *problems: Problem) -> None:
        self.limit = limit
        self.setting = variable(field)
        self.problems = problems
        super().__init__(f"{what}; the limit is {limit} ({self.setting})")


class TooLargeError(LimitError):
    """The request body, or the uploaded table after decompression, has too many bytes."""


class HeadTooLongError(LimitError):
    """The request line and headers have too many bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__("the request line and headers are too long", limit, "max_head_bytes")


class TableLimitError(LimitError):
    """The table has too many rows, columns or cells, or too many levels (categories) per column."""


class QueueFullError(LimitError):
    """Too many jobs of the workspace are waiting."""

    retry_after_seconds = 30


class PoolFullError(LimitError):
    """All workers of a pool are busy, and too many requests are waiting for one."""

    retry_after_seconds = 2


class QuotaError(LimitError):
    """The workspace has used up its quota of storage or training time."""


class TooManyRequestsError(LimitError):
    """An API key or person has sent too many requests in a minute or second.

    Requests to sign on are counted by IP address, because they are sent without a key.
    """

    def __init__(self, when: str, limit: int, retry_after_seconds: int) -> None:
        message = f"too many requests were sent {when}"
        super().__init__(message, limit, "max_requests_per_minute")
        self.retry_after_seconds = retry_after_seconds


class InvalidModelError(ServiceError):
    """The uploaded file is not a model, or is a model that this service cannot use."""

    def __init__(self, why: str) -> None:
        expected = "a model file, as written by `gcvae train` or downloaded as a model's `artifact`"
        self.problems = (Problem(why, expected=expected),)
        super().__init__(why)


class NoReportError(ServiceError):
    """The model has no quality report.

    Attributes:
        job_id: Id of the last job for a report of the model. If the model is not ready, this is the
            id of its training job. None if there is no such job.
        is_under_way: Whether the job `job_id` is waiting or running.
        advice: How to create a report; None if none can be created now.
    """

    def __init__(
        self,
        why: str,
        job_id: str | None = None,
        *,
        is_under_way: bool = False,
        can_be_made: bool = False,
    ) -> None:
        super().__init__(f"there is no report: {why}")
        self.job_id = job_id
        self.is_under_way = is_under_way
        self.advice = "create one with POST to this URL" if can_be_made else None


class ProcessDiedError(ServiceError):
    """The child process that handled a request died, usually because memory ran out."""

    def __init__(self) -> None:
        super().__init__(
            "the process that handled this request was killed, usually because memory ran out; "
            "send the request again, or request fewer rows at once"
        )


class SlowReaderError(ServiceError):
    """The client read a streamed response too slowly, so that the rest is not sent."""

    def __init__(self, limit_seconds: float) -> None:
        super().__init__(
            f"the client took longer than {limit_seconds:g} s to read the response "
            f"({variable('inline_seconds')})"
        )


class OutsideError(ServiceError):
    """A URL or an IP address of its host is not allowed by the operator, or a response is too long.

    Attributes:
        expected: Description of what is allowed.
    """

    def __init__(self, why: str, expected: str) -> None:
        super().__init__(why)
        self.expected = expected


class StoppingError(ServiceError):
    """The service is shutting down and has no time left for this request."""

    def __init__(self) -> None:
        super().__init__("the service is shutting down; send the request again later")


class NotReadyError(ServiceError):
    """A server that this service depends on does not respond.

    Attributes:
        checks: Result for each server: "ok", or the reason why it does not respond.
    """

    def __init__(self, checks: dict[str, str]) -> None:
        silent = ", ".join(name for name, answer in checks.items() if answer != "ok")
        super().__init__(f"not responding: {silent}")
        self.checks = checks


class UnauthorizedError(ServiceError):
    """The service requires an API key, and the request has no valid key or session.

    Attributes:
        sign_on: URL path of the API at which a web page begins single sign-on; None without it.
    """

    sign_on: str | None = None

    def __init__(self, why: str, *, of_session: bool = False) -> None:
        super().__init__(why)
        self.advice = (
            "sign in again"
            if of_session
            else "send `Authorization: Bearer gcv_…`; "
            "`gcvae keys create --workspace NAME` creates a key"
        )


class MissingScopeError(ServiceError):
    """The API key or person lacks the scope (permission) that the endpoint requires."""

    def __init__(self, scope: str, held: list[str], *, of_person: bool = False) -> None:
        whose, theirs = ("your groups", "give") if of_person else ("the given key", "has")
        asked = "" if of_person else "a key with "
        super().__init__(
            f"this call requires {asked}the scope {scope!r}; {whose} {theirs}: {', '.join(held)}"
        )
        scopes = ",".join(dict.fromkeys([*held, scope]))
        creation = f"`gcvae keys create --workspace NAME --scopes {scopes}`"
        of_groups = "ask the operator for a group with this scope"
        self.advice = of_groups if of_person else f"use such a key; {creation} creates one"


class SignOnError(ServiceError):
    """Single sign-on failed: an answer is invalid or expired, or the person has no access."""


class ProviderError(ServiceError):
    """The identity provider of single sign-on cannot be reached, or its answer is not valid."""


class ForeignSiteError(ServiceError):
    """The request has a foreign host name, or was sent by a web page of another site."""


class StartError(ServiceError):
    """The service cannot start with the current settings, for example if the port is taken."""


class CutOffError(BaseException):
    """A response was cut off after its status was sent, so that no error status can follow.

    The server then only closes the connection. This is a BaseException, so that no `except
    Exception` handles it. The reason is logged before this error is raised.
    """
