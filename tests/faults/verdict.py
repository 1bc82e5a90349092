"""What is left at the end: every job, every record, every byte, held against what it must be."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from catalog import Catalog, Job, JobKind, JobStatus, Result
from models_store import Store, open_store
from models_store.errors import StoreError
from models_store.manifests import Manifest
from runtime.folders import remove_left_folders
from tests.faults.deployment import Deployment
from tests.faults.observer import Observer
from tests.faults.trespass import Trespasser
from tests.faults.workload import Order, Workload

_ALL = 10_000


@dataclass
class Verdict:
    """What is wrong, by kind: everything empty is as it must be."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    crossed: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left_on_disk: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Nothing is wrong."""
        return not any(vars(self).values())


class Judge:
    """Judges a deployment whose servers are well.

    Args:
        workloads: one for each workspace, each with one job of each order, done before any fault.
    """

    def __init__(self, deployment: Deployment, workloads: Sequence[Workload]) -> None:
        self._deployment = deployment
        self._workloads = workloads
        self._store: Store = store_of(deployment)
        self._catalog = Catalog(deployment.database_url)
        self._records = {
            workload.workspace: self._catalog.workspace(workload.workspace)
            for workload in workloads
        }
        self._expected = {
            (workload.workspace, order): self._outcome(workload.workspace, job_id)
            for workload in workloads
            for job_id, order in workload.jobs.items()
        }
        assert len(set(self._expected.values())) == len(self._expected), "no two are the same"

    def judge(self, observer: Observer, trespasser: Trespasser) -> Verdict:
        """The verdict on everything that the users ordered."""
        verdict = Verdict()
        for workload in self._workloads:
            self._judge_workload(workload, verdict)
        verdict.doubled += observer.changed_after_the_end
        verdict.crossed = [*trespasser.crossed, *trespasser.sweep()]
        self._judge_store(verdict)
        scratch = self._deployment.scratch
        verdict.left_on_disk = [folder.name for folder in remove_left_folders(scratch)]
        return verdict

    def close(self) -> None:
        """Close the connections."""
        self._catalog.close()

    def _judge_workload(self, workload: Workload, verdict: Verdict) -> None:
        jobs = {job.id: job for job in self._jobs(workload.workspace)}
        verdict.lost += [job_id for job_id in workload.jobs if job_id not in jobs]
        verdict.doubled += [job_id for job_id in jobs if job_id not in workload.jobs]
        for job_id, order in workload.jobs.items():
            if job_id in jobs:
                self._judge_job(jobs[job_id], workload.workspace, order, verdict)

    def _jobs(self, workspace: str) -> Sequence[Job]:
        return self._records[workspace].jobs.list(limit=_ALL).items

    def _judge_job(self, job: Job, workspace: str, order: Order, verdict: Verdict) -> None:
        told = f"{job.id} ({order.kind} {order.number}, attempt {job.attempt})"
        if not job.status.is_final:
            verdict.stuck.append(f"{told}: {job.status}, {job.error}")
        elif job.status is not JobStatus.SUCCEEDED:
            verdict.failed.append(f"{told}: {job.status}, {job.error}")
        else:
            try:
                outcome = self._outcome(workspace, job.id)
            except StoreError as error:
                verdict.missing.append(f"{told}: {error}")
                return
            if outcome != self._expected[workspace, order]:
                verdict.wrong.append(f"{told}: not what an undisturbed run makes")
            for shard in self._catalog.all_jobs.shards(job.id):
                if shard.status is not JobStatus.SUCCEEDED:
                    verdict.stuck.append(f"{told}: its shard {shard.id} is {shard.status}")

    def _outcome(self, workspace: str, job_id: str) -> str:
        """A checksum of what the job made: of a model its weights, of a result its bytes."""
        records = self._records[workspace]
        job = records.jobs.get(job_id)
        if job.kind is JobKind.TRAIN:
            model = records.models.get(str(job.model_id))
            data = self._store.read(str(model.artifact_key), str(model.artifact_sha256))
            return _weights_sha256(data)
        result = records.results.get(str(job.result_id))
        digest = hashlib.sha256()
        for block in self._blocks(result):
            digest.update(block)
        return f"{result.rows} rows, {digest.hexdigest()}"

    def _blocks(self, result: Result) -> Iterator[bytes]:
        if result.manifest_sha256 is None:
            return self._store.stream(result.object_key, result.sha256)
        return self._manifest(result).stream(self._store)

    def _manifest(self, result: Result) -> Manifest:
        return Manifest.read(self._store, result.object_key, str(result.manifest_sha256))

    def _judge_store(self, verdict: Verdict) -> None:
        named = set[str]().union(*map(self._named, self._records))
        stored = {entry.key for entry in self._store.list()}
        verdict.orphans = sorted(stored - named)
        verdict.missing += sorted(named - stored)

    def _named(self, workspace: str) -> set[str]:
        """The keys in the store that the workspace's records name."""
        records = self._records[workspace]
        named = {dataset.object_key for dataset in records.datasets.list(limit=_ALL).items}
        named |= {str(m.artifact_key) for m in records.models.list(limit=_ALL).items
                  if m.artifact_key is not None}  # fmt: skip
        for result in records.results.list(limit=_ALL).items:
            named.add(result.object_key)
            if result.manifest_sha256 is not None:
                named |= {part.key for part in self._manifest(result).shards}
        unfinished = [job for job in self._jobs(workspace) if job.status is not JobStatus.SUCCEEDED]
        return named | {job.spec["table_key"] for job in unfinished if "table_key" in job.spec}


def store_of(deployment: Deployment) -> Store:
    """The store of a deployment."""
    with _environment(deployment.environment):
        return open_store(deployment.store_url)


def _weights_sha256(artifact: bytes) -> str:
    """A checksum of a model's weights alone: its record also holds times."""
    if artifact[:1].isalnum() and len(artifact) == 64:  # the stand-in's
        return artifact.decode()
    from safetensors.torch import load

    digest = hashlib.sha256()
    for name, tensor in sorted(load(artifact).items()):
        digest.update(name.encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


@contextmanager
def _environment(variables: dict[str, Any]) -> Iterator[None]:
    """These variables, as long as the block: S3 clients are set up by them."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
