"""Settings of the worker, read from environment variables."""

from __future__ import annotations

import os
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
    """Settings for running jobs. Times are in seconds.

    Attributes:
        lease_seconds: Time after a heartbeat until another worker may take the job.
        heartbeat_seconds: Interval of heartbeats, which report progress and detect cancellation.
        cancel_grace_seconds: Time that a cancelled job has to stop before its process is killed.
        first_checkpoint_seconds: Time from the start of training to its first checkpoint.
        checkpoint_seconds: Interval of the following checkpoints.
        keep_results_seconds: Age at which samples, scores, imputations and encodings are deleted;
            None keeps them.
        reconcile_seconds: Interval at which lost messages are sent again and bytes without records
            are deleted.
        job_threads: Number of CPU threads of a job. More threads may slow training down, because
            the networks are small.
        preload_torch: Whether torch and other libraries are imported when a worker starts, instead
            of with its first job.
        queues: Queues that a worker serves, separated by commas.
        slots_per_gpu: Number of training jobs that share a GPU.
        cpu_slots: Number of concurrent jobs on the CPU; on a machine with GPUs, of `compute` jobs.
        shutdown_seconds: Time that the worker has to end after a signal; a job that is not given
            back by then continues on another worker when its lease expires.
        metrics_port: Port on which the worker serves its metrics; None disables them.
        metrics_host: Address on which the port for metrics is opened.
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
    """All settings of a worker process, by the package that reads them."""

    catalog: CatalogSettings
    store: StoreSettings
    jobs: JobSettings
    runtime: RuntimeSettings

    def child_environment(self) -> dict[str, str]:
        """Returns environment variables with which a child process reads the same settings."""
        parts = (self.catalog, self.store, self.jobs, self.runtime)
        return environment_of({name: value for part in parts for name, value in part})


def visible_gpus() -> list[str] | None:
    """Returns the names of the GPUs in `CUDA_VISIBLE_DEVICES`; None if the variable is not set.

    As in CUDA, entries after -1 are ignored.
    """
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    return list(takewhile(lambda name: name != "-1", names))


def read_settings() -> WorkerSettings:
    """Reads all settings of the worker from environment variables.

    Raises:
        pydantic.ValidationError: A setting is missing or out of range; the error names it.
    """
    return WorkerSettings(
        CatalogSettings(),
        StoreSettings(),
        JobSettings(),
        RuntimeSettings(),
    )
