"""Exceptions that the client raises.

ClientError
├── UnreachableError        the service does not respond
├── ProblemError            the service responded with an error, stored as `problem`
│   ├── InvalidError        the request is invalid; `errors` gives the locations
│   ├── NotFoundError       the resource does not exist
│   ├── ConflictError       the resource's state does not allow the request
│   │   └── ModelNotReadyError  the model is in training, or its training failed
│   ├── BusyError           the service is overloaded; `retry_after_seconds` tells when to retry
│   └── ServiceFailedError  the service has an internal error
├── JobError                a job did not succeed; it is stored as `job`
│   ├── JobFailedError      the job failed
│   ├── JobCancelledError   the job was cancelled
│   └── WaitTimeoutError    the job did not finish within the time limit
├── MissingPackageError     data frames need a package that is not installed
└── IncompleteError         the connection broke off during a response
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
"""Advice for users of the client, by kind of problem; it replaces the service's advice."""


class ClientError(Exception):
    """Base class of all exceptions of the client."""


class UnreachableError(ClientError):
    """Raised if the service does not respond.

    Attributes:
        reason: Address of the service, and why it does not respond.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; check that it is running; `gcvae serve` starts one")
        self.reason = reason


class ProblemError(ClientError):
    """Raised if the service responds with an error.

    Attributes:
        problem: The error as JSON (RFC 9457).
        type: URI of the kind of problem, which does not change between versions.
        title: Kind of problem, for people.
        detail: What is wrong with this request.
        errors: JSON objects with the location of each error and what is expected there.
        reason: Title and detail in one line. The exception's message also contains advice.
        request_id: Id of the request in the service's log; None if there is none.
        retry_after_seconds: Time to wait before the next attempt; None if the service gives none.
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
        """Returns advice for this kind of problem; None if there is none.

        Args:
            remedies: Advice by kind of problem (the last part of `type`). This advice is preferred
                to the advice in the response, unless the URL of the request does not exist.
        """
        advice: str | None = self.problem.get("advice")
        name = self.type.rpartition(":")[2]
        leads_nowhere = name == "not-found" and "resource" not in self.problem
        return advice if leads_nowhere else remedies.get(name, advice)


class InvalidError(ProblemError):
    """Raised if the request is invalid; `errors` gives the locations."""


class NotFoundError(ProblemError):
    """Raised if a dataset, model, job or result does not exist."""


class ConflictError(ProblemError):
    """Raised if the state of a dataset, model or job does not allow the request."""


class ModelNotReadyError(ConflictError):
    """Raised if the model is still in training, or its training failed."""


class BusyError(ProblemError):
    """Raised if the service is overloaded or temporarily unavailable."""


class ServiceFailedError(ProblemError):
    """Raised if the service has an internal error."""


class JobError(ClientError):
    """Base class of exceptions about a job that did not succeed.

    Attributes:
        job: The job as JSON.
    """

    def __init__(self, message: str, job: Document) -> None:
        super().__init__(message)
        self.job = job


class JobFailedError(JobError):
    """Raised if the job failed."""


class JobCancelledError(JobError):
    """Raised if the job was cancelled."""


class WaitTimeoutError(JobError):
    """Raised if the job did not finish within the time limit; the job continues."""


class MissingPackageError(ClientError):
    """Raised if a data frame is requested or passed, and the package for it is not installed.

    Attributes:
        package: Name of the missing package.
    """

    def __init__(self, package: str) -> None:
        super().__init__(
            f"frames need {package}, which is not installed: pip install {package}; "
            "without it, format='csv' gives bytes and to='rows.csv' a file"
        )
        self.package = package


class IncompleteError(ClientError):
    """Raised if the connection broke off during a response, or a download is corrupted."""


def problem_error(
    status: int, problem: Document, retry_after_seconds: float | None
) -> ProblemError:
    """Returns the exception for an error response.

    Args:
        problem: The error as JSON (RFC 9457).
        retry_after_seconds: Time to wait before the next attempt, or None.
    """
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
