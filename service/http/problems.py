"""Responses to all errors, as RFC 9457 `application/problem+json`.

Only this file assigns HTTP statuses to errors.
"""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import catalog.errors as records
import gcvae.errors as library
import gcvae_sources.errors as sources
import models_store.errors as stored
from gcvae.errors import Problem, json_pointer
from service import errors
from service.bodies import EXPLAINED
from service.http.query_parameters import methods_at
from service.http.response_headers import REQUEST_ID, SECURITY

MEDIA_TYPE = "application/problem+json"
_BUSY_SECONDS = 1
_FULL_SECONDS = 30
_ADDRESS = (
    "use a base URL without a path, such as http://127.0.0.1:8000; the paths of all "
    "calls begin with "
    "/v1/, and GET /docs documents them"
)
_LISTED = ("dataset", "model", "job")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)

log = logging.getLogger("service")


@dataclass(frozen=True)
class Kind:
    """Kind of error in responses: a name that never changes, HTTP status, and title."""

    name: str
    status: int
    title: str

    @property
    def type(self) -> str:
        """URN that identifies the kind. Responses contain it as the member `type`."""
        return f"urn:gcvae:problem:{self.name}"


_DISK_FULL = Kind("disk-full", 503, "The service's disk is full")
_DATABASE_UNAVAILABLE = Kind("database-unavailable", 503, "The database does not respond")

# An error has the kind of the first class in its method resolution order that is a key here.
KINDS: dict[type[Exception], Kind] = {
    errors.RequestError: Kind("invalid-request", 422, "The request is not valid"),
    errors.MediaTypeError: Kind(
        "unsupported-media-type", 415, "Unsupported media type of the body"
    ),
    errors.NotAcceptableError: Kind("not-acceptable", 406, "No acceptable response format"),
    errors.NotOfferedError: Kind("not-offered", 422, "Not supported by this version"),
    errors.TooLargeError: Kind("too-large", 413, "The body is too large"),
    errors.HeadTooLongError: Kind("head-too-long", 431, "The request headers are too long"),
    errors.TableLimitError: Kind("limit-exceeded", 422, "A limit of this service is exceeded"),
    errors.QueueFullError: Kind("queue-full", 429, "Too many jobs are waiting"),
    errors.QuotaError: Kind("quota-exceeded", 403, "The quota of the workspace is used up"),
    errors.PoolFullError: Kind("busy", 429, "The service is busy"),
    errors.TooManyRequestsError: Kind("too-many-requests", 429, "Too many requests"),
    errors.InvalidModelError: Kind("invalid-model", 422, "The file is not a usable model"),
    errors.PreconditionError: Kind("precondition-failed", 412, "The resource has changed"),
    errors.UnauthorizedError: Kind("unauthorized", 401, "An API key is required"),
    errors.MissingScopeError: Kind("missing-scope", 403, "A required scope is missing"),
    errors.SignOnError: Kind("sign-on-refused", 403, "You were not signed in"),
    errors.ProviderError: Kind("provider-unavailable", 503, "The sign-in provider does not answer"),
    errors.NoReportError: Kind("no-report", 404, "The model has no report"),
    errors.ForeignSiteError: Kind("foreign-site", 403, "Request from another host or site refused"),
    library.TableError: Kind("invalid-table", 422, "The table cannot be used"),
    library.SchemaError: Kind("invalid-schema", 422, "The schema is not valid"),
    library.UnknownColumnError: Kind("unknown-column", 422, "Unknown column"),
    library.SettingError: Kind("invalid-training", 422, "The training settings are not valid"),
    library.HardRuleError: Kind("hard-rules-rarely-kept", 422, "Too few rows keep the hard rules"),
    library.ConditionError: Kind("invalid-condition", 422, "The condition cannot be satisfied"),
    library.LeftOutError: Kind("left-out", 422, "The model file does not contain this"),
    library.ScoringError: Kind("scoring-off", 403, "The model does not give these scores"),
    library.BudgetError: Kind(
        "privacy-budget-spent", 403, "The privacy budget of the table would be exceeded"
    ),
    sources.SourceError: Kind("unreadable-source", 422, "The connection cannot be read"),
    sources.TargetError: Kind("unwritable-target", 422, "The connection cannot be written to"),
    library.MissingPackageError: Kind("not-offered", 422, "Not supported by this service"),
    library.InputError: Kind("invalid-input", 422, "The input is not valid"),
    library.ModelVersionError: Kind(
        "model-of-another-version", 409, "The model was trained by another version"
    ),
    library.ArtifactError: Kind("artifact-damaged", 500, "The model artifact cannot be read"),
    records.NotFoundError: Kind("not-found", 404, "Resource not found"),
    records.ModelNotReadyError: Kind("model-not-ready", 409, "The model is not ready"),
    records.ConflictError: Kind("conflict", 409, "The state of the resource does not allow this"),
    records.CursorError: Kind("invalid-cursor", 422, "The cursor does not belong to this list"),
    records.IdempotencyMismatchError: Kind(
        "idempotency-key-reused", 422, "The Idempotency-Key was used for another request"
    ),
    records.IdempotencyBusyError: Kind(
        "idempotency-key-busy", 409, "The first request with this Idempotency-Key is still running"
    ),
    records.ReservationLostError: Kind("too-slow", 503, "The request took too long; send it again"),
    stored.CorruptedError: Kind("stored-bytes-damaged", 500, "Stored bytes are damaged"),
    stored.MissingObjectError: Kind("stored-bytes-missing", 500, "Stored bytes are missing"),
    stored.UnavailableError: Kind("store-unavailable", 503, "The store does not respond"),
    OperationalError: _DATABASE_UNAVAILABLE,
    PoolTimeoutError: _DATABASE_UNAVAILABLE,
    errors.ProcessDiedError: Kind(
        "process-died", 503, "The process that handled this request died"
    ),
    errors.NotReadyError: Kind("not-ready", 503, "The service is not ready"),
    errors.StoppingError: Kind("stopping", 503, "The service is shutting down"),
    DataError: Kind("invalid-request", 422, "The request is not valid"),
    ClientDisconnect: Kind(
        "client-gone", 400, "The client disconnected before the request was complete"
    ),
}


def install(app: FastAPI) -> None:
    """Registers exception handlers that respond to each error with `application/problem+json`."""
    for error_type in KINDS:
        app.add_exception_handler(error_type, answer_known)
    app.add_exception_handler(DBAPIError, answer_lost_connection)
    app.add_exception_handler(OSError, answer_full_disk)
    app.add_exception_handler(RequestValidationError, answer_invalid)
    app.add_exception_handler(HTTPException, answer_http)
    app.add_exception_handler(Exception, answer_unknown)


def kind_of(error: Exception) -> Kind:
    """Returns the kind of error (HTTP status and title) that `KINDS` assigns to an error's class.

    If `KINDS` does not contain the class, its closest base class in `KINDS` is used.
    """
    return next(KINDS[ancestor] for ancestor in type(error).__mro__ if ancestor in KINDS)


def answer_before_routes(request: Request, error: Exception) -> Response:
    """Returns the response to an error in middleware, where FastAPI calls no exception handlers.

    Raises:
        Exception: `error` itself, if `KINDS` contains no HTTP status for its class and it is not
            about a lost database connection.
    """
    if isinstance(error, tuple(KINDS)):
        return answer_known(request, error)
    return answer_lost_connection(request, error)


def answer_known(request: Request, error: Exception) -> Response:
    """Returns the response to an error for whose class `KINDS` contains a status and title."""
    kind = kind_of(error)
    if kind.status == HTTPStatus.SERVICE_UNAVAILABLE:
        log.warning("request %s: %s", request_id(request), error)
    elif kind.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request %s: %s", request_id(request), error, exc_info=error)
    detail = _database_detail(error) if isinstance(error, SQLAlchemyError) else str(error)
    return problem_response(request, kind, detail, **_members(error), headers=_headers(error))


def answer_invalid(request: Request, error: Exception) -> Response:
    """Returns the response to a request whose body, path or query fails validation."""
    assert isinstance(error, RequestValidationError)
    entries = [_located(found) for found in error.errors()]
    kind = KINDS[errors.RequestError]
    first = next(iter(entries), {"message": "the request is not valid"})
    members = ("pointer", "parameter", "message")
    if error.errors()[0]["type"] == EXPLAINED:
        detail = str(Problem(**first))
    else:
        detail = ": ".join(str(first[key]) for key in members if first.get(key))
    return problem_response(request, kind, detail, errors=entries)


def answer_http(request: Request, error: Exception) -> Response:
    """Returns the response to an error that FastAPI raises, such as an unknown path or method."""
    assert isinstance(error, HTTPException)
    cause = error.__cause__
    if isinstance(cause, Exception) and isinstance(
        cause, tuple(KINDS)
    ):  # the framework wraps errors while a body is read
        return answer_known(request, cause)
    status = HTTPStatus(error.status_code)
    kind = Kind(status.phrase.lower().replace(" ", "-"), status, status.phrase)
    detail = error.detail if error.detail != status.phrase else status.description
    headers = dict(error.headers or {})
    advice = {}
    if status == HTTPStatus.NOT_FOUND and error.detail == status.phrase:
        detail = f"{request.url.path} does not exist"
        advice = {"advice": _ADDRESS}
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        # FastAPI's Allow header lists only the methods of the first route with this path.
        allowed = ", ".join(methods_at(request.app, request.url.path)) or headers.get("Allow", "")
        headers["Allow"] = allowed
        detail = f"{request.method} is not allowed at {request.url.path}, but {allowed}"
    return problem_response(request, kind, detail, headers=headers, **advice)


def answer_full_disk(request: Request, error: Exception) -> Response:
    """Returns a 503 response if the local disk, on which uploads are held, is full.

    Raises:
        OSError: `error` itself, if it has another cause.
    """
    if not (isinstance(error, OSError) and error.errno in _FULL):
        raise error
    log.error("request %s: %s", request_id(request), error)
    headers = {"Retry-After": str(_FULL_SECONDS)}
    detail = "the service's disk is full; try again later"
    return problem_response(request, _DISK_FULL, detail, headers=headers)


def answer_lost_connection(request: Request, error: Exception) -> Response:
    """Returns a 503 response if the connection to the database was lost.

    Raises:
        Exception: `error` itself, if it has another cause.
    """
    if not (isinstance(error, DBAPIError) and error.connection_invalidated):
        raise error
    log.warning("request %s: %s", request_id(request), error)
    headers = {"Retry-After": str(_BUSY_SECONDS)}
    return problem_response(
        request, _DATABASE_UNAVAILABLE, _database_detail(error), headers=headers
    )


def answer_unknown(request: Request, error: Exception) -> Response:
    """Returns a 500 response to an unexpected error, with the request id to look up in the log."""
    log.error("request %s failed", request_id(request), exc_info=error)
    kind = Kind("internal-error", 500, "The service failed")
    detail = f"the log has the reason under request id {request_id(request)}"
    # This response bypasses the middleware, so the headers that they would add are added here.
    headers = {REQUEST_ID: request_id(request), **SECURITY}
    return problem_response(request, kind, detail, headers=headers)


def problem_response(
    request: Request,
    kind: Kind,
    detail: str,
    headers: Mapping[str, str] | None = None,
    **members: Any,
) -> Response:
    """Returns a response of the given kind as `application/problem+json`.

    Args:
        detail: What is wrong, in a sentence.
        headers: Additional headers of the response.
        members: Additional members of the JSON body.
    """
    document = {
        "type": kind.type,
        "title": kind.title,
        "status": int(kind.status),
        "detail": detail,
        "instance": request.url.path,
        "request_id": request_id(request),
        **members,
    }
    content = json.dumps(document, ensure_ascii=False, default=str).encode("utf-8", "replace")
    return Response(content, int(kind.status), headers, MEDIA_TYPE)


def request_id(request: Request) -> str:
    """Returns the id of the request, or "" before it is assigned."""
    return str(getattr(request.state, "request_id", ""))


def _database_detail(error: SQLAlchemyError) -> str:
    """Returns one line about a database error, without the SQL statement and its values."""
    if isinstance(error, DataError):
        return str(error.orig).splitlines()[0]
    return "try again in a moment"


def _members(error: Exception) -> dict[str, Any]:
    """Returns the additional JSON members of an error's response, such as `errors` and `limit`."""
    members: dict[str, Any] = {}
    problems: Iterable[Problem] = getattr(error, "problems", ())
    if problems:
        members["errors"] = [stated(problem) for problem in problems]
    if isinstance(error, errors.LimitError):
        members |= {"limit": error.limit, "setting": error.setting}
    for name in ("offered", "readable", "writable"):
        if getattr(error, name, None):
            members[name] = list(getattr(error, name))
    if isinstance(error, records.NotFoundError):
        members["resource"] = error.kind
    if advice := _advice(error):
        members["advice"] = advice
    if isinstance(error, errors.UnauthorizedError) and error.sign_on is not None:
        members["sign_on"] = error.sign_on
    if isinstance(error, errors.NotReadyError):
        members["checks"] = error.checks
    if isinstance(error, errors.NoReportError):
        members |= {"job_id": error.job_id, "is_under_way": error.is_under_way}
    return members


def _advice(error: Exception) -> str | None:
    if isinstance(error, records.NotFoundError) and error.kind in _LISTED:
        return f"GET /v1/{error.kind}s lists the existing ones"
    if isinstance(error, records.ModelNotReadyError):
        return "the job in the model's `job_id` shows its progress, or why it failed"
    return getattr(error, "advice", None)


def stated(problem: Problem) -> dict[str, Any]:
    """Returns a problem as a JSON object, without the members that are None."""
    return {name: value for name, value in asdict(problem).items() if value is not None}


def _headers(error: Exception) -> dict[str, str]:
    if isinstance(error, errors.UnauthorizedError):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(
        error, (errors.QueueFullError, errors.PoolFullError, errors.TooManyRequestsError)
    ):
        return {"Retry-After": str(error.retry_after_seconds)}
    if isinstance(error, errors.NoReportError) and error.is_under_way:
        return {"Retry-After": str(_BUSY_SECONDS)}
    may_pass = (records.IdempotencyBusyError, records.ReservationLostError)
    if isinstance(error, may_pass) or kind_of(error).status == HTTPStatus.SERVICE_UNAVAILABLE:
        return {"Retry-After": str(_BUSY_SECONDS)}
    return {}


def _located(found: Mapping[str, Any]) -> dict[str, Any]:
    """Converts an error of pydantic to an element of `errors` in a response: message and place. The
    place is a JSON pointer into the body, `?name` for the query, or another parameter's name."""
    part, *path = found["loc"]
    entry: dict[str, Any] = {"message": str(found["msg"]).removeprefix("Value error, ")}
    if part == "body":
        entry["pointer"] = json_pointer(*path)
    elif part == "query":
        entry["pointer"] = f"?{'.'.join(str(step) for step in path)}"
    else:
        entry["parameter"] = ".".join(str(step) for step in path)
    context = found.get("ctx") or {}
    right = {name: context.get(name) for name in ("expected", "suggestion")}
    return entry | {name: str(value) for name, value in right.items() if value is not None}
