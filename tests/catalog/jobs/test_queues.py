"""Whose job is next: fair between workspaces, by priority within one, on both databases."""

from __future__ import annotations

import threading
import time

import pytest

from catalog import Catalog, Claim, Failed, Job, JobKind, Model, Queue
from tests.catalog.conftest import add_dataset
from tests.claims import let_expire

_BOTH = (Queue.TRAIN, Queue.COMPUTE)
_ERROR = Failed("process_killed", "the job's process was killed by SIGKILL")


def _train(catalog: Catalog, workspace: str, priority: int = 0) -> Job:
    dataset = add_dataset(catalog, workspace=workspace)
    return catalog.workspace(workspace).jobs.enqueue_training(
        dataset_id=dataset.id, name="m", training={}, priority=priority
    )[1]


def _next(catalog: Catalog, *queues: Queue) -> Claim | None:
    return catalog.leases.claim_next(queues or _BOTH, "worker", 10)


def _claimed(catalog: Catalog, *queues: Queue) -> Claim:
    claim = _next(catalog, *queues)
    assert claim is not None
    return claim


def _done(catalog: Catalog, claim: Claim) -> str:
    catalog.leases.finish(claim, Failed("input", "no rows"))
    return claim.job.workspace


def test_a_worker_gets_the_jobs_of_its_queues_only(catalog: Catalog, ready_model: Model) -> None:
    training = _train(catalog, "default")
    sample = catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=ready_model.id, spec={}
    )
    assert (training.queue, sample.queue) == (Queue.TRAIN, Queue.COMPUTE)
    assert _claimed(catalog, Queue.COMPUTE).job_id == sample.id
    assert _next(catalog, Queue.COMPUTE) is None
    assert _claimed(catalog, Queue.TRAIN).job_id == training.id
    assert _next(catalog) is None


def test_of_one_workspace_the_highest_priority_comes_first_then_the_oldest(
    catalog: Catalog,
) -> None:
    jobs = [_train(catalog, "a", priority) for priority in (0, 5, 0, 5, -1)]
    order = [_claimed(catalog).job_id for _ in jobs]
    assert order == [jobs[number].id for number in (1, 3, 0, 2, 4)]


def test_one_worker_serves_the_workspaces_by_turns_whatever_waits_in_each(
    catalog: Catalog,
) -> None:
    for _ in range(6):
        _train(catalog, "many", priority=9)
    for _ in range(2):
        _train(catalog, "few")
    served = [_done(catalog, _claimed(catalog)) for _ in range(8)]
    assert sorted(served[:2]) == sorted(served[2:4]) == ["few", "many"]
    assert served[4:] == ["many"] * 4


def test_the_workspace_with_fewer_jobs_at_work_comes_first(catalog: Catalog) -> None:
    for workspace in ("a", "a", "a", "b", "b", "b"):
        _train(catalog, workspace)
    running = [_claimed(catalog) for _ in range(4)]
    assert sorted(claim.job.workspace for claim in running) == ["a", "a", "b", "b"]
    ended = next(claim for claim in running if claim.job.workspace == "b")
    _done(catalog, ended)
    assert _claimed(catalog).job.workspace == "b"


def test_a_limit_bounds_the_jobs_of_a_workspace_that_run_at_once(
    catalog: Catalog, catalog_url: str
) -> None:
    limited = Catalog(catalog_url, running_jobs_limit=2)
    for workspace in ("a", "a", "a", "b"):
        _train(catalog, workspace)
    claims = [_next(limited) for _ in range(4)]
    assert claims[3] is None
    first = claims[0]
    assert first is not None
    _done(catalog, first)
    assert (_next(limited) is not None) == (first.job.workspace == "a")
    limited.close()


def test_workers_that_claim_at_once_get_different_jobs_and_keep_the_limit(
    catalog: Catalog, catalog_url: str
) -> None:
    limited = Catalog(catalog_url, running_jobs_limit=3)
    for workspace in ("a", "a", "a", "a", "a", "b", "b", "b", "b"):
        _train(catalog, workspace)
    claims: list[Claim | None] = []
    workers = [threading.Thread(target=lambda: claims.append(_next(limited))) for _ in range(12)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    taken = [claim for claim in claims if claim is not None]
    assert len({claim.job_id for claim in taken}) == len(taken) == 6
    assert sorted(claim.job.workspace for claim in taken) == ["a", "a", "a", "b", "b", "b"]
    limited.close()


def test_a_job_whose_attempt_failed_rests_before_its_next_turn(
    catalog: Catalog, catalog_url: str
) -> None:
    patient = Catalog(catalog_url, resend_seconds=60)
    failing, other = _train(catalog, "a"), _train(catalog, "a")
    claim = _claimed(catalog)
    assert claim.job_id == failing.id
    patient.leases.release(claim, _ERROR)
    assert _claimed(catalog).job_id == other.id
    assert _next(catalog) is None
    patient.close()


def test_a_job_that_has_rested_has_its_turn_again(catalog: Catalog) -> None:
    failing = _train(catalog, "a")
    catalog.leases.release(_claimed(catalog), _ERROR)  # to rest 50 ms
    time.sleep(0.06)
    assert _claimed(catalog).job_id == failing.id


def test_a_job_whose_worker_died_is_taken_at_its_next_turn(catalog: Catalog) -> None:
    job = _train(catalog, "a")
    lost = _claimed(catalog)
    assert _next(catalog) is None
    let_expire(catalog, lost)
    again = _claimed(catalog)
    assert (again.job_id, again.attempt) == (job.id, 2)


def test_half_the_batch_is_remembered_and_the_checkpoint_of_the_whole_dropped(
    catalog: Catalog, training: Job
) -> None:
    claim = _claimed(catalog)
    catalog.leases.record_checkpoint(claim, "jobs/whole", "0" * 64)
    catalog.leases.release(claim, _ERROR, smaller_batch=True)
    job = catalog.workspace("default").jobs.get(training.id)
    assert (job.smaller_batch, job.checkpoint_key) == (True, None)
    assert catalog.orphans.take_due() == ["jobs/whole"]
    catalog.workspace("default").jobs.request_cancel(job.id)
    assert not catalog.workspace("default").jobs.retry(job.id).smaller_batch


def test_an_estimate_stays_with_its_job(catalog: Catalog, ready_model: Model) -> None:
    estimate = {"seconds": 12.5, "memory_bytes": 10**9}
    job = catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=ready_model.id, spec={}, priority=3, estimate=estimate
    )
    again = catalog.workspace("default").jobs.get(job.id)
    assert (again.estimate, again.priority) == (estimate, 3)


@pytest.mark.parametrize("kind", JobKind)
def test_every_kind_of_job_has_its_queue(kind: JobKind) -> None:
    assert (kind.queue is Queue.TRAIN) == (kind is JobKind.TRAIN)
