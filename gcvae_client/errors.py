"""The errors of the client.

ClientError
├── UnreachableError        the service does not respond
├── ProblemError            the service refused the request; has its problem document
│   ├── InvalidError        the request is invalid; `errors` name the locations
│   ├── NotFoundError       the resource does not exist
│   ├── ConflictError       the resource's state does not allow the request
│   │   └── ModelNotReadyError  the model is in training, or its training failed
│   ├── BusyError           too much is waiting; `retry_after_seconds`
│   └── ServiceFailedError  the service itself failed
├── JobError                has the job
│   ├── JobFailedError      it failed
│   ├── JobCancelledError   it was cancelled
│   └── WaitTimeoutError    it is not over yet
├── MissingPackageError     frames are requested, and a package that they need is not installed
└── IncompleteError         a download was cut off
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]

_NOT_READY = "urn:gcvae:problem:model-not-ready"

REMEDIES = {
    "unauthorized": "give an API key: Client(url, api_key=...)",
    "missing-scope": "give Client(url, api_key=...) a key with this scope",
    "no-report": "create one with client.make_report(model) once the model is ready",
    "not-found": "client.datasets(), .models() and .jobs() list the existing ones",
    "model-not-ready": "client.wait(model) returns after the training, or raises its error",
}
"""Advice for Python users, in place of the service's advice for REST."""


class ClientError(Exception):
    """Root of the client's errors."""


class UnreachableError(ClientError):
    """The service does not respond.

    Attributes:
        reason: Address and cause.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; check that it is running; `gcvae serve` starts one")
        self.reason = reason


class ProblemError(ClientError):
    """The service refused the request.

    Attributes:
        status: HTTP status code.
        type: Stable name of the problem.
        title: Kind of problem, for people.
        detail: What is wrong with this request.
        errors: Documents with locations and what would be right.
        reason: Title and detail in one line. The text of the error also has the advice.
        request_id: Id of the request in the service's log.
        retry_after_seconds: When to try again, if the service says so.
    """

    def __init__(
        self, status: int, problem: Document, retry_after_seconds: float | None = None
    ) -> None:
        self.status = status
        self.problem = problem
        self.type = str(problem.get("type", "about:blank"))
        self.title = str(problem.get("title", f"HTTP {status}; this is not a gcvae service"))
        self.detail = str(problem.get("detail", ""))
        self.errors: list[Document] = list(problem.get("errors", []))
        self.request_id = problem.get("request_id")
        self.retry_after_seconds = retry_after_seconds
        self.reason = f"{self.title}: {self.detail}" if self.detail else self.title
        remedy = self.remedy(REMEDIES)
        super().__init__(f"{self.reason}; {remedy}" if remedy else self.reason)

    def remedy(self, remedies: Mapping[str, str]) -> str | None:
        """Returns advice from `remedies` for this kind of problem.

        Without an entry, returns the service's advice; also if the address itself was wrong.
        """
        advice: str | None = self.problem.get("advice")
        name = self.type.rpartition(":")[2]
        leads_nowhere = name == "not-found" and "resource" not in self.problem
        return advice if leads_nowhere else remedies.get(name, advice)


class InvalidError(ProblemError):
    """The request is invalid."""


class NotFoundError(ProblemError):
    """The resource does not exist."""


class ConflictError(ProblemError):
    """The resource's state does not allow the request."""


class ModelNotReadyError(ConflictError):
    """The model is in training, or its training failed."""


class BusyError(ProblemError):
    """Too much work is waiting already."""


class ServiceFailedError(ProblemError):
    """The service itself failed."""


class JobError(ClientError):
    """A job did not succeed."""

    def __init__(self, message: str, job: Document) -> None:
        super().__init__(message)
        self.job = job


class JobFailedError(JobError):
    """The job failed."""


class JobCancelledError(JobError):
    """The job was cancelled."""


class WaitTimeoutError(JobError):
    """The job is not over yet."""


class MissingPackageError(ClientError):
    """Frames are requested, and a package that they need is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"frames need {package}, which is not installed: pip install {package}; "
            "without it, format='csv' gives bytes and to='rows.csv' a file"
        )
        self.package = package


class IncompleteError(ClientError):
    """A download was cut off."""


def problem_error(
    status: int, problem: Document, retry_after_seconds: float | None
) -> ProblemError:
    """Returns the exception for a problem document."""
    kinds: dict[int, type[ProblemError]] = {
        404: NotFoundError,
        409: ConflictError,
        429: BusyError,
        503: BusyError,
    }
    if problem.get("type") == _NOT_READY:
        return ModelNotReadyError(status, problem, retry_after_seconds)
    other = InvalidError if status < 500 else ServiceFailedError
    return kinds.get(status, other)(status, problem, retry_after_seconds)
