"""The worker's settings, from the environment."""

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
    """How jobs are run.

    Attributes:
        lease_seconds: how long a worker owns a job without a sign of life.
        heartbeat_seconds: between two signs of life; they carry progress and learn of cancelling.
        cancel_grace_seconds: what a job gets to stop by itself before it is killed.
        first_checkpoint_seconds: from the start of training to its first checkpoint.
        checkpoint_seconds: between the checkpoints after it.
        keep_results_seconds: samples, scores, imputations and encodings older than this are
            deleted; None keeps them until somebody deletes them.
        reconcile_seconds: between two rounds of the reconciler.
        job_threads: computing threads of a job. The networks are small: on a busy machine a second
            thread made training ten times slower, for each waits for the other.
        preload_torch: jobs' imports are done when a worker starts, not when its first job does.
        queues: that a worker serves, with a comma between.
        slots_per_gpu: training jobs that share a GPU.
        cpu_slots: jobs at once on the CPU; beside GPUs these are the jobs of `compute`.
        shutdown_seconds: from the signal to the end; a job that is not handed back by then goes to
            the next worker when its lease is over.
        metrics_port: where the worker's own figures are served; None serves none.
        metrics_host: the address of that port.
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
    """Everything that a worker process needs to know."""

    catalog: CatalogSettings
    store: StoreSettings
    jobs: JobSettings
    runtime: RuntimeSettings

    def child_environment(self) -> dict[str, str]:
        """The environment of a child process that gets the same settings."""
        return environment_of(dict(self._fields()))

    def _fields(self) -> Iterator[tuple[str, object]]:
        for part in (self.catalog, self.store, self.jobs, self.runtime):
            yield from part


def visible_gpus() -> list[str] | None:
    """The GPUs that `CUDA_VISIBLE_DEVICES` names; None where it is not set.

    As CUDA reads it: whatever stands after a -1 does not count.
    """
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    return list(takewhile(lambda name: name != "-1", names))


def read_settings() -> WorkerSettings:
    """The settings that the environment gives.

    Raises:
        pydantic.ValidationError: one is missing or out of its range; it is named.
    """
    return WorkerSettings(
        CatalogSettings(),
        StoreSettings(),
        JobSettings(),
        RuntimeSettings(),
    )
