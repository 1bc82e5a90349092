"""Settings of the worker, from the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import NoDecode

from catalog import Queue
from catalog.settings import CatalogSettings
from models_store.settings import StoreSettings
from runtime.settings import USUAL, RuntimeSettings, Settings, environment_of


class JobSettings(Settings):
    """Settings for running jobs.

    Attributes:
        lease_seconds: Duration of a lease without a heartbeat.
        heartbeat_seconds: Interval of heartbeats, which report progress and detect cancellation.
        cancel_grace_seconds: Time for a job to stop before it is killed.
        first_checkpoint_seconds: Time from the start of training to its first checkpoint.
        checkpoint_seconds: Interval of the following checkpoints.
        keep_results_seconds: Age at which samples, scores, imputations and encodings are deleted;
            None keeps them.
        reconcile_seconds: Interval of the reconciler.
        job_threads: Computing threads of a job. The networks are small; on a busy machine a second
            thread made training ten times slower.
        preload_torch: Whether imports of jobs are done when a worker starts, instead of with its
            first job.
        queues: Queues that a worker serves, separated by commas.
        slots_per_gpu: Number of training jobs that share a GPU.
        cpu_slots: Number of concurrent jobs on the CPU; with GPUs, of `compute` jobs.
        shutdown_seconds: Time from the signal to the end; a job that is not given back by then
            continues on another worker when its lease expires.
        metrics_port: Port of the worker's metrics; None for none.
        metrics_host: Address of that port.
    """

    lease_seconds: float = Field(15.0, gt=0)
    heartbeat_seconds: float = Field(1.0, gt=0)
    cancel_grace_seconds: float = Field(10.0, ge=0)
    first_checkpoint_seconds: float = Field(1.0, ge=0)
    checkpoint_seconds: float = Field(10.0, ge=0)
    keep_results_seconds: Annotated[float | None, USUAL] = Field(None, gt=0)
    reconcile_seconds: float = Field(1.0, gt=0)
    job_threads: Annotated[int, USUAL] = Field(1, ge=1)
    preload_torch: bool = True
    queues: Annotated[tuple[Queue, ...], NoDecode, USUAL] = Field((Queue.TRAIN, Queue.COMPUTE))
    slots_per_gpu: Annotated[int, USUAL] = Field(1, ge=1)
    cpu_slots: Annotated[int, USUAL] = Field(1, ge=1)
    shutdown_seconds: int = Field(10, gt=0)
    metrics_port: int | None = Field(default=None, ge=1, le=65535)
    metrics_host: str = "127.0.0.1"

    @field_validator("queues", mode="before")
    @classmethod
    def _split_queues(cls, queues: object) -> object:
        if not isinstance(queues, str):
            return queues
        names = [name.strip() for name in queues.split(",") if name.strip()]
        if not names:
            raise ValueError(f"no queue is given; choose from {', '.join(Queue)}")
        return names

    @model_validator(mode="after")
    def _beats_thrice_in_a_lease(self) -> Self:
        if self.heartbeat_seconds > self.lease_seconds / 3:
            raise ValueError("heartbeat_seconds must be at most a third of lease_seconds")
        return self


@dataclass(frozen=True)
class WorkerSettings:
    """All settings of a worker process."""

    catalog: CatalogSettings
    store: StoreSettings
    jobs: JobSettings
    runtime: RuntimeSettings

    def child_environment(self) -> dict[str, str]:
        """Returns the environment of a child process with the same settings."""
        return environment_of(dict(self._fields()))

    def _fields(self) -> Iterator[tuple[str, object]]:
        for part in (self.catalog, self.store, self.jobs, self.runtime):
            yield from part


def visible_gpus() -> list[str] | None:
    """Returns the GPUs in `CUDA_VISIBLE_DEVICES`; None if it is not set.

    As in CUDA, entries after -1 are ignored.
    """
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    return list(takewhile(lambda name: name != "-1", names))


def read_settings() -> WorkerSettings:
    """Returns the settings from the environment.

    Raises:
        pydantic.ValidationError: A setting is missing or out of range; the error names it.
    """
    return WorkerSettings(
        CatalogSettings(),
        StoreSettings(),
        JobSettings(),
        RuntimeSettings(),
    )
