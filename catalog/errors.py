"""The errors of the catalog."""

from __future__ import annotations


class CatalogError(Exception):
    """Base class of the errors of the service's database of records."""


class DatabaseUrlError(CatalogError):
    """The database URL is invalid, or its scheme is neither SQLite nor PostgreSQL."""


class SchemaVersionError(CatalogError):
    """The database's tables were made by an older or newer version of this program."""


class BadKeyError(CatalogError):
    """An API key is malformed, unknown, expired or revoked, or a session has ended."""


class NotFoundError(CatalogError):
    """The workspace contains no record of this kind with this id."""

    def __init__(self, kind: str, record_id: str) -> None:
        super().__init__(f"there is no {kind} {record_id!r}")
        self.kind = kind


class ConflictError(CatalogError):
    """The record's current state does not allow the request."""


class SchemaChangedError(ConflictError):
    """A dataset's schema was changed by another request since the caller read it."""

    def __init__(self, dataset_id: str) -> None:
        super().__init__(
            f"the schema of dataset {dataset_id} was changed by another request; read it again"
        )


class LooserScoringError(ConflictError):
    """A request would allow a model to return more detailed scores than it may return now."""

    def __init__(self, model_id: str, now: str, asked: str) -> None:
        super().__init__(
            f"scoring of model {model_id} is {str(now)!r} and cannot be changed to the less "
            f"restrictive {str(asked)!r}; train another model on the dataset (scope 'write')"
        )


class ModelNotReadyError(ConflictError):
    """A job was requested for a model whose training has not succeeded."""

    def __init__(self, model_id: str, status: str) -> None:
        super().__init__(f"model {model_id} is {status}; this requires a ready model")


class CursorError(CatalogError):
    """A page cursor was not returned by an earlier page of this list."""

    def __init__(self, cursor: str) -> None:
        super().__init__(
            f"cursor {cursor!r} does not belong to this list; use the `next_cursor` of "
            "its previous page"
        )


class IdempotencyMismatchError(CatalogError):
    """An idempotency key was already used for a different request."""

    def __init__(self, key: str) -> None:
        super().__init__(f"Idempotency-Key {key!r} was used for another request; use a new key")


class IdempotencyBusyError(CatalogError):
    """The first request with this idempotency key is still in progress."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the first request with Idempotency-Key {key!r} is still running")


class ReservationLostError(CatalogError):
    """The bytes of a new record were deleted as garbage before the record was created."""

    def __init__(self) -> None:
        super().__init__("the upload took too long and its data was removed; try again")


class LeaseLostError(CatalogError):
    """An attempt must stop without writing: its job has ended or belongs to another attempt."""

    def __init__(self, job_id: str, attempt: int) -> None:
        super().__init__(f"attempt {attempt} no longer owns job {job_id}")


class DispatchError(CatalogError):
    """The message broker did not accept a message; a worker will send it again later."""
