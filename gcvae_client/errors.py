"""The errors of the client.

ClientError
├── UnreachableError        the service does not answer
├── ProblemError            the service refused; carries its problem document
│   ├── InvalidError        what was sent is wrong: `errors` name the places
│   ├── NotFoundError       there is no such resource
│   ├── ConflictError       the resource is in another state
│   │   └── ModelNotReadyError  the model is in training, or its training failed
│   ├── BusyError           too much is waiting; `retry_after_seconds`
│   └── ServiceFailedError  the service itself failed
├── JobError                carries the job
│   ├── JobFailedError      it failed
│   ├── JobCancelledError   it was cancelled
│   └── WaitTimeoutError    it is not over yet
├── MissingPackageError     frames are asked for, and what makes them is not installed
└── IncompleteError         a download broke off
"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

_NOT_READY = "urn:gcvae:problem:model-not-ready"


class ClientError(Exception):
    """Root of the client's errors."""


class UnreachableError(ClientError):
    """The service does not answer."""


class ProblemError(ClientError):
    """The service refused.

    Attributes:
        status: HTTP status code.
        type: Stable name of the problem.
        title: The kind of problem, for people.
        detail: What is wrong with this request.
        errors: The places and what would be right, each a document.
        request_id: What the service's log names the request by.
        retry_after_seconds: When to try again, where the service says so.
    """

    def __init__(
        self, status: int, problem: Document, retry_after_seconds: float | None = None
    ) -> None:
        self.status = status
        self.problem = problem
        self.type = str(problem.get("type", "about:blank"))
        self.title = str(problem.get("title", f"HTTP {status}"))
        self.detail = str(problem.get("detail", ""))
        self.errors: list[Document] = list(problem.get("errors", []))
        self.request_id = problem.get("request_id")
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{self.title}: {self.detail}" if self.detail else self.title)


class InvalidError(ProblemError):
    """What was sent is wrong."""


class NotFoundError(ProblemError):
    """There is no such resource."""


class ConflictError(ProblemError):
    """The resource is in another state."""


class ModelNotReadyError(ConflictError):
    """The model is in training, or its training failed."""

    def __str__(self) -> str:
        """What the service says, and what to do."""
        return f"{super().__str__()}; client.wait(model) returns once it is, or says why it is not"


class BusyError(ProblemError):
    """Too much is waiting already."""


class ServiceFailedError(ProblemError):
    """The service itself failed."""


class JobError(ClientError):
    """A job did not end as hoped."""

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
    """Frames are asked for, and what makes them is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"frames need {package}, which is not installed: pip install {package}; "
            "without it, format='csv' gives bytes and to='rows.csv' a file"
        )
        self.package = package


class IncompleteError(ClientError):
    """A download broke off."""


def problem_error(
    status: int, problem: Document, retry_after_seconds: float | None
) -> ProblemError:
    """The exception that a refusal becomes."""
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
