"""Prefixes of the store keys under which the bytes of records are kept."""

from __future__ import annotations

from catalog.database.tables import JobRow
from catalog.job_kinds import JobKind
from catalog.records import Job


def dataset_prefix(dataset_id: str) -> str:
    """Returns the store prefix of a dataset's bytes."""
    return f"datasets/{dataset_id}/"


def input_prefix(job_id: str) -> str:
    """Returns the store prefix of the table that was uploaded as a job's input."""
    return f"jobs/{job_id}/input/"


def checkpoint_prefix(job_id: str, attempt: int) -> str:
    """Returns the store prefix of the training checkpoints that an attempt at a job saves."""
    return f"jobs/{job_id}/attempts/{attempt}/"


def result_prefix(result_id: str) -> str:
    """Returns the store prefix of the bytes of a result."""
    return f"results/{result_id}/"


def output_prefix(job: Job | JobRow, attempt: int) -> str:
    """Returns the store prefix under which an attempt at a job stores its model, table or shard."""
    if job.kind == JobKind.TRAIN:
        return f"models/{job.model_id}/attempts/{attempt}/"
    if job.parent_id is not None:
        shard = f"shards/{job.spec['number']}/attempts/{attempt}/"
        return f"{result_prefix(str(job.result_id))}{shard}"
    return f"{result_prefix(str(job.result_id))}attempts/{attempt}/"


def model_prefix(model_id: str) -> str:
    """Returns the store prefix of a model's artifact."""
    return f"models/{model_id}/"
