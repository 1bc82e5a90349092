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
"""What to do in Python, where the service's own advice is for callers of REST."""


class ClientError(Exception):
    """Root of the client's errors."""


class UnreachableError(ClientError):
    """The service does not answer.

    Attributes:
        reason: Which, and how it failed.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; check that it is running; `gcvae serve` starts one")
        self.reason = reason


class ProblemError(ClientError):
    """The service refused.

    Attributes:
        status: HTTP status code.
        type: Stable name of the problem.
        title: The kind of problem, for people.
        detail: What is wrong with this request.
        errors: The places and what would be right, each a document.
        reason: Title and detail in a line. The text of the error says what to do, too.
        request_id: What the service's log names the request by.
        retry_after_seconds: When to try again, where the service says so.
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
        """What to do, by the kind of problem, at a door that has words of its own.

        The service's words, where the door has none, or where the address itself led nowhere.
        """
        advice: str | None = self.problem.get("advice")
        name = self.type.rpartition(":")[2]
        leads_nowhere = name == "not-found" and "resource" not in self.problem
        return advice if leads_nowhere else remedies.get(name, advice)


class InvalidError(ProblemError):
    """What was sent is wrong."""


class NotFoundError(ProblemError):
    """There is no such resource."""


class ConflictError(ProblemError):
    """The resource is in another state."""


class ModelNotReadyError(ConflictError):
    """The model is in training, or its training failed."""


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
