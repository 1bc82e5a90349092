"""The life cycle of jobs, on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
import time

import pytest
from sqlalchemy import text

from catalog import (
    Cancelled,
    Catalog,
    Claim,
    Failed,
    Job,
    JobKind,
    JobStatus,
    Model,
    ModelStatus,
    Produced,
    Trained,
)
from catalog.errors import (
    ConflictError,
    LeaseLostError,
    ModelNotReadyError,
    NotFoundError,
    ReservationLostError,
)
from tests.catalog.conftest import add_dataset
from tests.claims import claim_job, let_expire
from tests.wordings import refuses

_SHA256 = "0" * 64
_ERROR = Failed("process_killed", "the job's process was killed by SIGKILL")


def _claim(catalog: Catalog, job: Job, owner: str = "worker", lease_seconds: float = 10) -> Claim:
    claim = claim_job(catalog, job.id, owner, lease_seconds)
    assert claim is not None
    return claim


def _due(catalog: Catalog) -> list[str]:
    return [job.id for job in catalog.leases.take_due()]


def _let_pass(catalog: Catalog, seconds: float) -> None:
    """As if nobody had looked after the messages for so long."""
    earlier = text("UPDATE jobs SET next_dispatch_at = next_dispatch_at - :seconds")
    with catalog.database.writing() as session:
        session.execute(earlier, {"seconds": seconds})


def _trained(claim: Claim) -> Trained:
    key = f"models/{claim.job.model_id}/attempts/{claim.attempt}/model.gcvae"
    return Trained(key, _SHA256, 100, schema={"columns": []}, record={"epochs": 3})


class TestClaim:
    def test_a_queued_job_is_claimed_once(self, catalog: Catalog, training: Job) -> None:
        claim = _claim(catalog, training)
        assert claim.attempt == 1
        assert claim.job.status is JobStatus.RUNNING
        assert claim.job.started_at is not None
        assert claim_job(catalog, training.id, "another", 10) is None

    def test_of_many_workers_one_gets_the_job(self, catalog: Catalog, training: Job) -> None:
        claims: list[Claim | None] = []
        workers = [
            threading.Thread(
                target=lambda n=n: claims.append(claim_job(catalog, training.id, f"w{n}", 10))
            )
            for n in range(8)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(claims) == 8
        assert sum(claim is not None for claim in claims) == 1

    def test_a_job_whose_lease_expired_is_claimed_again(
        self, catalog: Catalog, training: Job
    ) -> None:
        first = _claim(catalog, training, "first")
        assert claim_job(catalog, training.id, "second", 10) is None
        let_expire(catalog, first)
        second = _claim(catalog, training, "second")
        assert (first.attempt, second.attempt) == (1, 2)
        assert second.job.started_at == first.job.started_at

    def test_an_unknown_job_is_not_claimed(self, catalog: Catalog) -> None:
        assert claim_job(catalog, "job_none", "worker", 10) is None

    def test_a_finished_job_is_not_claimed(self, catalog: Catalog, training: Job) -> None:
        claim = _claim(catalog, training)
        catalog.leases.finish(claim, _trained(claim))
        assert claim_job(catalog, training.id, "another", 10) is None

    def test_a_child_finds_its_parents_claim(self, catalog: Catalog, training: Job) -> None:
        claim = _claim(catalog, training)
        assert catalog.leases.find_claim(training.id, claim.owner, 1, 10) == claim
        assert catalog.leases.find_claim(training.id, "another", 1, 10) is None


class TestHeartbeat:
    def test_a_heartbeat_begins_the_lease_anew(self, catalog: Catalog, training: Job) -> None:
        claim = _claim(catalog, training)
        let_expire(catalog, claim)
        assert catalog.leases.heartbeat(claim).alive
        assert claim_job(catalog, training.id, "another", 10) is None

    def test_progress_changes_the_version_and_its_absence_does_not(
        self, catalog: Catalog, training: Job
    ) -> None:
        claim = _claim(catalog, training)
        before = catalog.workspace("default").jobs.get(training.id).version
        catalog.leases.heartbeat(claim)
        assert catalog.workspace("default").jobs.get(training.id).version == before
        catalog.leases.heartbeat(claim, {"phase": "training", "fraction": 0.5})
        job = catalog.workspace("default").jobs.get(training.id)
        assert job.version == before + 1
        assert job.progress == {"phase": "training", "fraction": 0.5}

    def test_an_attempt_that_was_replaced_learns_it(self, catalog: Catalog, training: Job) -> None:
        first = _claim(catalog, training, "first")
        let_expire(catalog, first)
        _claim(catalog, training, "second")
        assert not catalog.leases.heartbeat(first, {"fraction": 0.9}).alive
        assert catalog.workspace("default").jobs.get(training.id).progress == {}

    def test_a_heartbeat_brings_the_wish_to_cancel(self, catalog: Catalog, training: Job) -> None:
        claim = _claim(catalog, training)
        assert not catalog.leases.heartbeat(claim).cancel_requested
        catalog.workspace("default").jobs.request_cancel(training.id)
        assert catalog.leases.heartbeat(claim).cancel_requested


class TestFinish:
    def test_job_and_model_change_together(self, catalog: Catalog, training: Job) -> None:
        claim = _claim(catalog, training)
        catalog.leases.finish(claim, _trained(claim))
        job, model = (
            catalog.workspace("default").jobs.get(training.id),
            catalog.workspace("default").models.get(str(training.model_id)),
        )
        assert job.status is JobStatus.SUCCEEDED
        assert job.finished_at is not None
        assert model.status is ModelStatus.READY
        assert model.artifact_key == _trained(claim).artifact_key
        assert model.record == {"epochs": 3}

    def test_a_failed_training_names_its_error(self, catalog: Catalog, training: Job) -> None:
        catalog.leases.finish(_claim(catalog, training), Failed("input", "no rows", ({"line": 1},)))
        job = catalog.workspace("default").jobs.get(training.id)
        assert job.status is JobStatus.FAILED
        assert job.error == {"code": "input", "message": "no rows", "problems": [{"line": 1}]}
        assert (
            catalog.workspace("default").models.get(str(training.model_id)).status
            is ModelStatus.FAILED
        )

    def test_a_replaced_attempt_can_not_overwrite_its_successor(
        self, catalog: Catalog, training: Job
    ) -> None:
        first = _claim(catalog, training, "first")
        let_expire(catalog, first)
        second = _claim(catalog, training, "second")
        for write in (
            lambda: catalog.leases.finish(first, _trained(first)),
            lambda: catalog.leases.release(first, _ERROR),
            lambda: catalog.leases.hand_back(first),
            lambda: catalog.leases.record_checkpoint(first, "key", _SHA256),
        ):
            with refuses(LeaseLostError):
                write()
        catalog.leases.finish(second, _trained(second))
        with pytest.raises(LeaseLostError):
            catalog.leases.finish(first, Failed("late", "late"))
        model = catalog.workspace("default").models.get(str(training.model_id))
        assert model.artifact_key == _trained(second).artifact_key

    def test_only_what_was_published_last_is_kept(self, catalog: Catalog, training: Job) -> None:
        first = _claim(catalog, training, "first")
        let_expire(catalog, first)
        second = _claim(catalog, training, "second")
        catalog.leases.finish(second, _trained(second))
        assert sorted(catalog.orphans.take_due()) == sorted(
            [
                f"jobs/{training.id}/attempts/1/",
                f"jobs/{training.id}/attempts/2/",
                f"jobs/{training.id}/input/",
                f"models/{training.model_id}/attempts/1/",
            ]
        )

    def test_a_sample_job_makes_a_result(self, catalog: Catalog, ready_model: Model) -> None:
        job = catalog.workspace("default").jobs.enqueue(
            JobKind.SAMPLE, model_id=ready_model.id, spec={"rows": 5}
        )
        with refuses(NotFoundError):
            catalog.workspace("default").results.get(str(job.result_id))
        produced = Produced("results/x", _SHA256, 9, "text/csv", 5, {"seed": 1})
        catalog.leases.finish(_claim(catalog, job), produced)
        result = catalog.workspace("default").results.get(str(job.result_id))
        assert (result.rows, result.media_type, result.model_id) == (5, "text/csv", ready_model.id)
        assert catalog.workspace("default").results.list().items == [result]


class TestAttempts:
    def test_a_job_is_given_up_when_its_attempts_are_used_up(
        self, catalog: Catalog, training: Job
    ) -> None:
        for _ in range(2):
            assert catalog.leases.release(_claim(catalog, training), _ERROR) is JobStatus.QUEUED
        assert catalog.leases.release(_claim(catalog, training), _ERROR) is JobStatus.FAILED
        job = catalog.workspace("default").jobs.get(training.id)
        assert job.error is not None
        assert job.error["code"] == "attempts_used_up"
        assert "3 attempts" in job.error["message"]
        assert "SIGKILL" in job.error["message"]
        assert (
            catalog.workspace("default").models.get(str(training.model_id)).status
            is ModelStatus.FAILED
        )

    def test_the_count_begins_again_with_every_new_checkpoint(
        self, catalog: Catalog, training: Job
    ) -> None:
        for number in range(1, 6):
            claim = _claim(catalog, training)
            catalog.leases.record_checkpoint(claim, f"jobs/checkpoint-{number}", _SHA256)
            assert catalog.leases.release(claim, _ERROR) is JobStatus.QUEUED
        for _ in range(2):
            assert catalog.leases.release(_claim(catalog, training), _ERROR) is JobStatus.QUEUED
        assert catalog.leases.release(_claim(catalog, training), _ERROR) is JobStatus.FAILED
        assert catalog.workspace("default").jobs.get(training.id).attempt == 8

    def test_attempts_that_a_server_failed_are_not_counted_but_end_some_time(
        self, catalog: Catalog, training: Job
    ) -> None:
        away = Failed("server_away", "the store cannot do this")
        for _ in range(30):
            claim = _claim(catalog, training)
            assert catalog.leases.release(claim, away, is_counted=False) is JobStatus.QUEUED
        for _ in range(2):
            catalog.leases.release(_claim(catalog, training), away, is_counted=False)
        job = catalog.workspace("default").jobs.get(training.id)
        assert job.status is JobStatus.FAILED
        assert job.error is not None
        assert "the store cannot do this" in job.error["message"]

    def test_attempts_that_vanish_are_counted_too(self, catalog: Catalog, training: Job) -> None:
        for _ in range(3):
            let_expire(catalog, _claim(catalog, training))
        assert claim_job(catalog, training.id, "fourth", 10) is None
        assert catalog.leases.close_abandoned() == [training.id]
        job = catalog.workspace("default").jobs.get(training.id)
        assert job.status is JobStatus.FAILED
        assert job.error is not None
        assert "stopped responding" in job.error["message"]

    def test_a_shutdown_counts_no_attempt(self, catalog: Catalog, training: Job) -> None:
        for _ in range(5):
            catalog.leases.hand_back(_claim(catalog, training))
        assert catalog.workspace("default").jobs.get(training.id).attempts_since_checkpoint == 0

    def test_a_new_checkpoint_leaves_the_old_one_to_garbage_collection(
        self, catalog: Catalog, training: Job
    ) -> None:
        claim = _claim(catalog, training)
        catalog.leases.record_checkpoint(claim, "jobs/1", _SHA256)
        assert catalog.orphans.take_due() == []
        catalog.leases.record_checkpoint(claim, "jobs/2", _SHA256)
        assert catalog.orphans.take_due() == ["jobs/1"]
        assert catalog.workspace("default").jobs.get(training.id).checkpoint_key == "jobs/2"


class TestCancelAndRetry:
    def test_a_queued_job_is_cancelled_at_once(self, catalog: Catalog, training: Job) -> None:
        assert (
            catalog.workspace("default").jobs.request_cancel(training.id).status
            is JobStatus.CANCELLED
        )
        assert (
            catalog.workspace("default").models.get(str(training.model_id)).status
            is ModelStatus.CANCELLED
        )
        assert claim_job(catalog, training.id, "worker", 10) is None

    def test_cancelling_twice_is_no_error(self, catalog: Catalog, training: Job) -> None:
        claim = _claim(catalog, training)
        first = catalog.workspace("default").jobs.request_cancel(training.id)
        assert first.cancel_requested
        assert catalog.workspace("default").jobs.request_cancel(training.id) == first
        catalog.leases.finish(claim, Cancelled())
        assert (
            catalog.workspace("default").jobs.request_cancel(training.id).status
            is JobStatus.CANCELLED
        )

    def test_what_is_over_can_not_be_cancelled(self, catalog: Catalog, ready_model: Model) -> None:
        with refuses(ConflictError):
            catalog.workspace("default").jobs.request_cancel(str(ready_model.job_id))

    def test_an_abandoned_job_that_is_to_be_cancelled_is_cancelled(
        self, catalog: Catalog, training: Job
    ) -> None:
        claim = _claim(catalog, training)
        catalog.workspace("default").jobs.request_cancel(training.id)
        assert catalog.leases.close_abandoned() == []
        let_expire(catalog, claim)
        assert claim_job(catalog, training.id, "another", 10) is None
        assert catalog.leases.close_abandoned() == [training.id]
        assert catalog.workspace("default").jobs.get(training.id).status is JobStatus.CANCELLED

    def test_an_attempt_that_dies_while_being_cancelled_is_cancelled(
        self, catalog: Catalog, training: Job
    ) -> None:
        claim = _claim(catalog, training)
        catalog.workspace("default").jobs.request_cancel(training.id)
        assert catalog.leases.release(claim, _ERROR) is JobStatus.CANCELLED

    def test_a_failed_job_is_retried_from_the_start(self, catalog: Catalog, training: Job) -> None:
        catalog.leases.finish(_claim(catalog, training), Failed("input", "no"))
        job = catalog.workspace("default").jobs.retry(training.id)
        assert (job.status, job.error, job.finished_at) == (JobStatus.QUEUED, None, None)
        assert (
            catalog.workspace("default").models.get(str(training.model_id)).status
            is ModelStatus.TRAINING
        )
        assert _claim(catalog, training).attempt == 2

    def test_only_failed_and_cancelled_jobs_are_retried(
        self, catalog: Catalog, training: Job
    ) -> None:
        with refuses(ConflictError):
            catalog.workspace("default").jobs.retry(training.id)

    def test_a_job_whose_dataset_is_deleted_is_not_retried(
        self, catalog: Catalog, training: Job
    ) -> None:
        catalog.workspace("default").jobs.request_cancel(training.id)
        catalog.workspace("default").datasets.delete(str(training.dataset_id))
        with refuses(ConflictError):
            catalog.workspace("default").jobs.retry(training.id)


class TestDispatch:
    def test_a_job_is_due_again_until_somebody_takes_it(self, catalog_url: str) -> None:
        catalog = Catalog(catalog_url, resend_seconds=60, resend_limit_seconds=120)
        dataset = add_dataset(catalog)
        _, job = catalog.workspace("default").jobs.enqueue_training(
            dataset_id=dataset.id, name="m", training={}
        )
        assert catalog.leases.take_due() == []  # the service has just sent it
        _let_pass(catalog, 61)
        assert _due(catalog) == [job.id]
        assert catalog.leases.take_due() == []
        _let_pass(catalog, 121)
        assert _due(catalog) == [job.id]
        _claim(catalog, job)
        _let_pass(catalog, 121)
        assert catalog.leases.take_due() == []
        catalog.close()

    def test_a_job_whose_worker_died_is_due_at_once(self, catalog: Catalog, training: Job) -> None:
        let_expire(catalog, _claim(catalog, training))
        assert _due(catalog) == [training.id]

    def test_after_a_start_every_queued_job_is_due(self, catalog: Catalog, training: Job) -> None:
        catalog.leases.make_due()
        assert _due(catalog) == [training.id]

    def test_a_job_given_back_is_due_after_a_growing_pause(
        self, catalog: Catalog, training: Job
    ) -> None:
        claim = _claim(catalog, training)
        before = time.time()
        catalog.leases.release(claim, _ERROR)
        after = time.time()
        first = catalog.workspace("default").jobs.get(training.id).next_dispatch_at
        assert first is not None
        assert before - 0.001 <= first.timestamp() - 0.05 <= after + 0.001  # to a millisecond
        catalog.leases.release(_claim(catalog, training), _ERROR)
        second = catalog.workspace("default").jobs.get(training.id).next_dispatch_at
        assert second is not None
        assert second.timestamp() - first.timestamp() > 0.04


class TestEnqueue:
    def test_an_unready_model_takes_no_jobs(self, catalog: Catalog, training: Job) -> None:
        with refuses(ModelNotReadyError):
            catalog.workspace("default").jobs.enqueue(
                JobKind.SAMPLE, model_id=str(training.model_id), spec={}
            )

    def test_what_does_not_exist_is_named(self, catalog: Catalog) -> None:
        with refuses(NotFoundError):
            catalog.workspace("default").jobs.enqueue_training(
                dataset_id="ds_none", name="m", training={}
            )
        with refuses(NotFoundError):
            catalog.workspace("default").jobs.enqueue(JobKind.SCORE, model_id="mdl_none", spec={})
        assert catalog.workspace("default").jobs.list().items == []

    def test_a_job_with_an_input_needs_its_reservation(
        self, catalog: Catalog, ready_model: Model
    ) -> None:
        job_id = catalog.workspace("default").jobs.new_id()
        with pytest.raises(ReservationLostError):
            catalog.workspace("default").jobs.enqueue(
                JobKind.SCORE, model_id=ready_model.id, spec={}, job_id=job_id
            )
        catalog.orphans.reserve(f"jobs/{job_id}/input/", 60)
        job = catalog.workspace("default").jobs.enqueue(
            JobKind.SCORE, model_id=ready_model.id, spec={}, job_id=job_id
        )
        assert job.id == job_id

    def test_jobs_are_counted_by_status(self, catalog: Catalog, training: Job) -> None:
        assert catalog.workspace("default").jobs.count([JobStatus.QUEUED, JobStatus.RUNNING]) == 1
        assert catalog.workspace("other").jobs.count([JobStatus.QUEUED]) == 0
        assert catalog.workspace("default").jobs.count([JobStatus.QUEUED]) == 1
