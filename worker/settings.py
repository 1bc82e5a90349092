"""The worker's settings, from the environment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from catalog.settings import CatalogSettings
from models_store.settings import StoreSettings
from runtime.settings import RuntimeSettings, Settings, told_environment


class JobSettings(Settings):
    """How jobs are run.

    Attributes:
        lease_seconds: how long a worker owns a job without a sign of life.
        heartbeat_seconds: between two signs of life; they carry progress and learn of cancelling.
        cancel_grace_seconds: what a job gets to stop by itself before it is killed.
        first_checkpoint_seconds: from the start of training to its first checkpoint.
        checkpoint_seconds: between the checkpoints after it.
        reconcile_seconds: between two looks of the reconciler.
        job_threads: computing threads of a job. The networks are small: on a busy machine a second
            thread made training ten times slower, for each waits for the other.
        metrics_port: where the worker's own figures are served; None serves none.
        metrics_host: the address of that port.
    """

    lease_seconds: float = Field(15.0, gt=0)
    heartbeat_seconds: float = Field(1.0, gt=0)
    cancel_grace_seconds: float = Field(10.0, ge=0)
    first_checkpoint_seconds: float = Field(1.0, ge=0)
    checkpoint_seconds: float = Field(10.0, ge=0)
    reconcile_seconds: float = Field(1.0, gt=0)
    job_threads: int = Field(1, ge=1)
    metrics_port: int | None = Field(default=None, ge=1, le=65535)
    metrics_host: str = "127.0.0.1"

    @model_validator(mode="after")
    def _beats_thrice_in_a_lease(self) -> Self:
        if self.heartbeat_seconds > self.lease_seconds / 3:
            raise ValueError("heartbeat_seconds must be at most a third of lease_seconds")
        return self


@dataclass(frozen=True)
class WorkerSettings:
    """Everything that a worker process needs to know."""

    catalog: CatalogSettings
    store: StoreSettings
    jobs: JobSettings
    runtime: RuntimeSettings

    def child_environment(self) -> dict[str, str]:
        """The environment of a child process that is told the same settings."""
        return told_environment(dict(self._fields()))

    def _fields(self) -> Iterator[tuple[str, object]]:
        for part in (self.catalog, self.store, self.jobs, self.runtime):
            yield from part


def read_settings() -> WorkerSettings:
    """The settings that the environment gives.

    Raises:
        pydantic.ValidationError: one is missing or out of its range; it is named.
    """
    return WorkerSettings(
        CatalogSettings(),  # type: ignore[call-arg]
        StoreSettings(),  # type: ignore[call-arg]
        JobSettings(),
        RuntimeSettings(),
    )
