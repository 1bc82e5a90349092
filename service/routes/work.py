"""Endpoint that shows queues, workers and running jobs of all workspaces, for operators."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from catalog.job_kinds import JobKind, Queue
from catalog.records import Job, Worker
from service.bodies import ProgressBody
from service.resources import Shared

router = APIRouter(prefix="/v1/work", tags=["work"])

_MOST_HELD = 200
_LOST_SECONDS = 30.0
"""Time without a report after which a worker counts as lost; workers report every five seconds."""


class QueueBody(BaseModel):
    """Numbers of waiting and running jobs that a workspace has in one queue."""

    workspace: str
    queue: Queue
    queued: int
    running: int
    oldest_queued_at: datetime | None = Field(description="null if no job is waiting")


class WorkerBody(BaseModel):
    """A worker process and its slots, each of which runs one job at a time."""

    name: str = Field(description="host and process")
    version: str
    slots: list[str] = Field(
        description="device and queues of each slot; a slot runs one job at a time"
    )
    started_at: datetime
    seen_at: datetime = Field(description="time of its last report")
    is_lost: bool = Field(description=f"no report for {_LOST_SECONDS:.0f} seconds")


class HeldJobBody(BaseModel):
    """A running job and the worker that holds its lease (a right to run it for a limited time)."""

    id: str
    workspace: str
    kind: JobKind
    queue: Queue
    parent_id: str | None = Field(description="for shards: their job")
    worker: str | None = Field(description="host and process that hold the lease")
    attempt: int
    started_at: datetime | None
    lease_expires_at: datetime | None
    is_lost: bool = Field(
        description="the lease is no longer renewed; another worker will take the job"
    )
    progress: ProgressBody


class WorkBody(BaseModel):
    """Queues, workers and running jobs of all workspaces at one time."""

    now: datetime = Field(description="current time by the database's clock, like all other times")
    queues: list[QueueBody]
    workers: list[WorkerBody]
    jobs: list[HeldJobBody] = Field(description=f"the first {_MOST_HELD} running jobs")


@router.get("")
def show_work(resources: Shared) -> WorkBody:
    """List the queues of all workspaces, workers and running jobs. Requires the scope `admin`."""
    catalog = resources.catalog
    now, workers = catalog.workers.list()
    return WorkBody(
        now=now,
        queues=[QueueBody.model_validate(vars(state)) for state in catalog.all_jobs.queues()],
        workers=[_worker(worker, now) for worker in workers],
        jobs=[_held(job, now) for job in catalog.all_jobs.held(_MOST_HELD)],
    )


def _worker(worker: Worker, now: datetime) -> WorkerBody:
    """Returns the description of a worker. It counts as lost if it has not reported for some time
    before `now`, the time of the database's clock."""
    is_lost = (now - worker.seen_at).total_seconds() > _LOST_SECONDS
    return WorkerBody.model_validate(vars(worker) | {"is_lost": is_lost})


def _held(job: Job, now: datetime) -> HeldJobBody:
    """Returns the description of a running job. It is lost if its lease ended before `now`."""
    owner, expires_at = job.lease_owner, job.lease_expires_at
    found = {
        "worker": None if owner is None else owner.rpartition("/")[0],
        "is_lost": expires_at is not None and expires_at < now,
    }
    return HeldJobBody.model_validate(vars(job) | found)
