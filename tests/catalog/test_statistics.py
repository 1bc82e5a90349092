"""Counts that outlive every process, and how the queues stand."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from catalog import Catalog, Dataset, Failed, Job, JobKind, Model, Produced
from catalog.counts import Counted
from catalog.errors import LeaseLostError
from catalog.origins import Origin, coming_from
from tests.catalog.conftest import trained


def counted(catalog: Catalog, what: Counted, **labels: str) -> float:
    """The sum of a count over all its labels that are not given."""
    return sum(
        found.value
        for found in catalog.statistics.counts()
        if found.name == what and labels.items() <= found.labels.items()
    )


def claim(catalog: Catalog, job: Job, owner: str = "one", lease_seconds: float = 10) -> Any:
    claimed = catalog.leases.claim(job.id, owner, lease_seconds)
    assert claimed is not None
    return claimed


def state(catalog: Catalog, kind: JobKind) -> Any:
    [found] = [state for state in catalog.statistics.kinds() if state.kind is kind]
    return found


def test_a_job_that_is_done_is_counted_once(catalog: Catalog, training: Job) -> None:
    assert counted(catalog, Counted.CREATED, kind="train") == 1
    claimed = claim(catalog, training)
    catalog.leases.finish(claimed, trained(training))
    with pytest.raises(LeaseLostError):
        catalog.leases.finish(claimed, trained(training))
    assert counted(catalog, Counted.ATTEMPTS, kind="train") == 1
    assert counted(catalog, Counted.FINISHED, kind="train", outcome="succeeded") == 1
    assert counted(catalog, Counted.FINISHED) == 1
    assert counted(catalog, Counted.WAIT, le="0.5") == 1
    assert counted(catalog, Counted.DURATION, outcome="succeeded", le="0.5") == 1
    assert 0 <= counted(catalog, Counted.DURATION, le="sum") < 10


def test_an_attempt_that_fails_is_a_retry_with_its_reason(catalog: Catalog, training: Job) -> None:
    catalog.leases.release(claim(catalog, training), Failed("process_killed", "killed"))
    catalog.leases.hand_back(claim(catalog, training))
    assert counted(catalog, Counted.RETRIES, reason="process_killed") == 1
    assert counted(catalog, Counted.RETRIES, reason="handed_back") == 1
    assert counted(catalog, Counted.FINISHED) == 0


def test_the_loss_of_a_lease_is_counted_by_who_takes_the_job(
    catalog: Catalog, training: Job
) -> None:
    claim(catalog, training, "dead", lease_seconds=0.01)
    time.sleep(0.05)
    assert state(catalog, JobKind.TRAIN).abandoned == 1
    claim(catalog, training, "successor")
    assert counted(catalog, Counted.LEASE_LOSSES, kind="train") == 1
    assert counted(catalog, Counted.RETRIES, reason="lease_lost") == 1


def test_the_loss_of_the_last_lease_is_counted_too(catalog: Catalog, training: Job) -> None:
    for _ in range(3):
        claim(catalog, training, lease_seconds=0.01)
        time.sleep(0.05)
    assert catalog.leases.settle() == [training.id]
    assert counted(catalog, Counted.LEASE_LOSSES) == 3
    assert counted(catalog, Counted.FINISHED, outcome="failed") == 1


def test_rows_of_results_are_counted(catalog: Catalog, ready_model: Model) -> None:
    job = catalog.jobs.enqueue(JobKind.SAMPLE, model_id=ready_model.id, spec={"rows": 70})
    produced = Produced("results/x/rows.csv", "0" * 64, 5, "text/csv", rows=70)
    catalog.leases.finish(claim(catalog, job), produced)
    assert counted(catalog, Counted.ROWS, kind="sample") == 70


def test_what_is_rolled_back_is_not_counted(catalog: Catalog, dataset: Dataset) -> None:
    from catalog.counts import count

    def fail() -> None:
        with catalog.database.writing() as session:
            count(session, Counted.CREATED, kind="train")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert counted(catalog, Counted.CREATED) == 0


def test_counts_of_many_threads_add_up(catalog: Catalog) -> None:
    from catalog.counts import count

    kinds = [kind.value for kind in JobKind]

    def add(start: int) -> None:
        for turn in range(10):
            with catalog.database.writing() as session:
                for kind in kinds[start:] + kinds[:start]:  # each in another order
                    count(session, Counted.CREATED, kind=kind)
                    assert turn < 10

    threads = [threading.Thread(target=add, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted(catalog, Counted.CREATED) == 4 * 10 * 4


def test_the_queues_stand_as_the_records_say(catalog: Catalog, training: Job) -> None:
    time.sleep(0.02)
    waiting = state(catalog, JobKind.TRAIN)
    assert (waiting.queued, waiting.running, waiting.abandoned) == (1, 0, 0)
    assert 0 < waiting.oldest_seconds < 60
    claimed = claim(catalog, training)
    catalog.leases.heartbeat(claimed, {"phase": "training", "rows_per_second": 1250.5})
    running = state(catalog, JobKind.TRAIN)
    assert (running.queued, running.running, running.oldest_seconds) == (0, 1, 0)
    assert running.rows_per_second == 1250.5
    assert state(catalog, JobKind.SCORE).queued == 0


def test_a_job_that_waits_again_is_as_old_as_its_waiting(catalog: Catalog, training: Job) -> None:
    time.sleep(0.3)
    catalog.leases.hand_back(claim(catalog, training))
    assert state(catalog, JobKind.TRAIN).oldest_seconds < 0.3


def test_leftovers_that_are_due_are_counted(catalog: Catalog) -> None:
    catalog.leftovers.reserve("datasets/a/", 60)
    catalog.leftovers.leave(["datasets/b/"])
    assert catalog.statistics.leftovers() == 1


def test_a_job_carries_the_request_that_queued_it(catalog: Catalog, dataset: Dataset) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with coming_from(Origin("order-17", parent)):
        job = catalog.jobs.enqueue_training(dataset_id=dataset.id, name="m", training={})[1]
    assert (job.request_id, job.traceparent) == ("order-17", parent)
    catalog.jobs.request_cancel(job.id)
    with coming_from(Origin("order-18")):
        again = catalog.jobs.retry(job.id)
    assert (again.request_id, again.traceparent) == ("order-18", None)
    assert claim(catalog, job).job.request_id == "order-18"
