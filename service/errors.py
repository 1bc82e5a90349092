"""The errors of the service. Which HTTP answer each becomes stands in `problems.py` alone.

Those of which nothing else says what to do have `advice`, for callers of REST.

ServiceError
├── RequestError            the request can not be understood; carries `problems`
├── MediaTypeError          a body of a kind that this call does not read
├── NotAcceptableError      an answer of a kind that this call does not write
├── NotOfferedError         well formed, but nothing here can do it; names what there is
├── LimitError              a limit; carries its setting and its value
│   ├── TooLargeError       bytes
│   ├── HeadTooLongError    line and headers of a request
│   ├── TableLimitError     rows, columns, cells, levels
│   ├── QueueFullError      jobs that wait
│   ├── PoolFullError       inline work that waits
│   ├── QuotaError          what a workspace may take in all
│   └── TooManyRequestsError  requests of one key
├── InvalidModelError       a file that is no model, or none that can be used here
├── StateError              the resource is not in the state that this call needs
├── NoReportError           a model has no report, or none yet; carries the job
├── PreconditionError       the resource is not the one that the caller has read
├── ProcessDiedError        a process of inline work ended in the midst of it
├── SlowReaderError         an answer was read so slowly that it lost its place
├── StoppingError           the service stops and answers no more
├── NotReadyError           a server that the service stands on does not answer
├── UnauthorizedError       the request has no key that is in force
├── MissingScopeError       its key does not let it do that
├── ForeignSiteError        a keyless service is called from another site's page
└── StartError              the service can not start as it is set up

CutOffError (no Exception)  an answer was cut off after it had begun, and that is logged
"""

from __future__ import annotations

from gcvae.errors import Problem
from service.settings import variable

_SHEET = 'save the sheet as "CSV UTF-8" and send that as text/csv'


class ServiceError(Exception):
    """Root of the service's errors."""


class PreconditionError(ServiceError):
    """The resource changed since the caller read it."""


class RequestError(ServiceError):
    """The request can not be understood."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        """The first problem in one line."""
        return str(self.problems[0])


class MediaTypeError(ServiceError):
    """The body is of a kind that this call does not read."""

    def __init__(self, given: str | None, readable: tuple[str, ...]) -> None:
        said = "has no Content-Type" if given is None else f"is {given!r}"
        way_out = f"; {_SHEET}" if given is not None and "spreadsheet" in given.lower() else ""
        super().__init__(
            f"the media type of the body {said}; this call accepts {', '.join(readable)}{way_out}"
        )
        self.readable = readable


class NotAcceptableError(ServiceError):
    """The answer can not be written in any of the accepted kinds."""

    def __init__(self, accept: str, writable: tuple[str, ...]) -> None:
        super().__init__(f"Accept is {accept!r}; this call can return {', '.join(writable)}")
        self.writable = writable


class NotOfferedError(ServiceError):
    """What was asked is well formed, but this version can not do it."""

    def __init__(self, problem: Problem, offered: tuple[str, ...] = ()) -> None:
        super().__init__(problem)
        self.problems = (problem,)
        self.offered = offered

    def __str__(self) -> str:
        """The problem in one line."""
        return str(self.problems[0])


class LimitError(ServiceError):
    """A limit of this service; `setting` is the environment variable that moves it."""

    def __init__(self, what: str, limit: float, field: str, *problems: Problem) -> None:
        self.limit = limit
        self.setting = variable(field)
        self.problems = problems
        super().__init__(f"{what}; the limit is {limit} ({self.setting})")


class TooLargeError(LimitError):
    """More bytes than this service takes."""


class HeadTooLongError(LimitError):
    """Line and headers of a request have more bytes than this service takes."""

    def __init__(self, limit: int) -> None:
        super().__init__("the request line and headers are too long", limit, "max_head_bytes")


class TableLimitError(LimitError):
    """More rows, columns, cells or levels than this service takes."""


class QueueFullError(LimitError):
    """Too many jobs wait already."""

    retry_after_seconds = 30


class PoolFullError(LimitError):
    """Too much inline work waits already."""

    retry_after_seconds = 2


class QuotaError(LimitError):
    """A workspace has taken as much as it may: storage, or time of training."""


class TooManyRequestsError(LimitError):
    """A key has sent as many requests as it may for now."""

    def __init__(self, when: str, limit: int, retry_after_seconds: int) -> None:
        message = f"this key has sent too many requests {when}"
        super().__init__(message, limit, "max_requests_per_minute")
        self.retry_after_seconds = retry_after_seconds


class InvalidModelError(ServiceError):
    """A file is no model, or none that can be used here."""

    def __init__(self, why: str) -> None:
        expected = "a model file, as written by `gcvae train` or downloaded as a model's `artifact`"
        self.problems = (Problem(why, expected=expected),)
        super().__init__(why)


class StateError(ServiceError):
    """The resource is not in the state that this call needs."""


class NoReportError(ServiceError):
    """A model has no report.

    Attributes:
        job_id: of the job that makes it, or was to make it; of the training that comes before.
        is_under_way: it comes by itself.
        advice: how one is made, where that can be.
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
    """The process that worked on a request ended in the midst of it."""

    def __init__(self) -> None:
        super().__init__(
            "the process that handled this request was killed, usually because memory ran out; "
            "send the request again, or request fewer rows at once"
        )


class SlowReaderError(ServiceError):
    """The reader of a streamed answer took so long that the rest of it is not sent."""

    def __init__(self, limit_seconds: float) -> None:
        super().__init__(
            f"the client took longer than {limit_seconds:g} s to read the response "
            f"({variable('inline_seconds')})"
        )


class StoppingError(ServiceError):
    """The service was asked to stop and has no time left for this request."""

    def __init__(self) -> None:
        super().__init__("the service is shutting down; send the request again later")


class NotReadyError(ServiceError):
    """A server that this service stands on does not answer; `checks` says which, and why."""

    def __init__(self, checks: dict[str, str]) -> None:
        silent = ", ".join(name for name, answer in checks.items() if answer != "ok")
        super().__init__(f"not responding: {silent}")
        self.checks = checks


class UnauthorizedError(ServiceError):
    """The service has keys, and the request has none that is in force."""

    def __init__(self, why: str, *, of_session: bool = False) -> None:
        super().__init__(why)
        self.advice = (
            "sign in again with an API key"
            if of_session
            else "send `Authorization: Bearer gcv_…`; "
            "`gcvae keys create --workspace NAME` creates a key"
        )


class MissingScopeError(ServiceError):
    """The request's key does not let it do what it asks for."""

    def __init__(self, scope: str, held: list[str]) -> None:
        super().__init__(
            f"this call requires a key with the scope {scope!r}; the given key has: "
            f"{', '.join(held)}"
        )
        wanted = ",".join(dict.fromkeys([*held, scope]))
        self.advice = f"`gcvae keys create --workspace NAME --scopes {wanted}` creates such a key"


class ForeignSiteError(ServiceError):
    """A keyless service answers its own machine only, not the pages of other sites."""


class StartError(ServiceError):
    """The service can not start as it is set up."""


class CutOffError(BaseException):
    """An answer was cut off after it had begun: the connection is to be closed, nothing else.

    It passes every `except Exception`: nobody is there to answer, and the log has its line.
    """
