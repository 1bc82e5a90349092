"""Counts that outlive every process, and how the queues stand."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from catalog import Cancelled, Catalog, Dataset, Failed, Job, JobKind, Model, Produced
from catalog.database.counts import BUCKETS_SECONDS, Counted
from catalog.errors import LeaseLostError
from catalog.jobs.jobs import RequestContext, in_request
from tests.catalog.conftest import trained
from tests.claims import claim_job, let_expire


def counted(catalog: Catalog, what: Counted, **labels: str) -> float:
    """The sum of a count over all its labels that are not given."""
    return sum(
        found.value
        for found in catalog.statistics.counts()
        if found.name == what and labels.items() <= found.labels.items()
    )


def observed(catalog: Catalog, what: Counted, **labels: str) -> float:
    """How many durations there are in the buckets of a histogram."""
    bounds = map(str, (*BUCKETS_SECONDS, "+Inf"))
    return sum(counted(catalog, what, le=bound, **labels) for bound in bounds)


def claim(catalog: Catalog, job: Job, owner: str = "one") -> Any:
    claimed = claim_job(catalog, job.id, owner, 10)
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
    assert observed(catalog, Counted.WAIT) == 1
    assert observed(catalog, Counted.DURATION, outcome="succeeded") == 1
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
    let_expire(catalog, claim(catalog, training, "dead"))
    assert state(catalog, JobKind.TRAIN).abandoned == 1
    claim(catalog, training, "successor")
    assert counted(catalog, Counted.LEASE_LOSSES, kind="train") == 1
    assert counted(catalog, Counted.RETRIES, reason="lease_lost") == 1


def test_the_loss_of_the_last_lease_is_counted_too(catalog: Catalog, training: Job) -> None:
    for _ in range(3):
        let_expire(catalog, claim(catalog, training))
    assert catalog.leases.close_abandoned() == [training.id]
    assert counted(catalog, Counted.LEASE_LOSSES) == 3
    assert counted(catalog, Counted.FINISHED, outcome="failed") == 1


def test_rows_of_results_are_counted(catalog: Catalog, ready_model: Model) -> None:
    job = catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=ready_model.id, spec={"rows": 70}
    )
    produced = Produced("results/x/rows.csv", "0" * 64, 5, "text/csv", rows=70)
    catalog.leases.finish(claim(catalog, job), produced)
    assert counted(catalog, Counted.ROWS, kind="sample") == 70


def in_shards(catalog: Catalog, model: Model) -> Job:
    """A queued job of two shards, 5,000 rows in all."""
    rows = [range(0, 4096), range(4096, 5000)]
    spec = {"rows": 5000, "seed": 1, "format": "csv"}
    return catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=model.id, spec=spec, shards=rows
    )


def made(claimed: Any, rows: int) -> Produced:
    key = f"results/x/{claimed.job_id}/{claimed.attempt}"
    return Produced(key, "0" * 64, 5, "text/csv", rows)


def test_a_job_in_shards_is_one_job_and_its_rows_are_counted_once(
    catalog: Catalog, ready_model: Model
) -> None:
    job = in_shards(catalog, ready_model)
    assert counted(catalog, Counted.CREATED, kind="sample") == 1
    for shard, rows in zip(catalog.all_jobs.shards(job.id), (4096, 904), strict=True):
        claimed = claim(catalog, shard)
        catalog.leases.finish(claimed, made(claimed, rows))
    assert counted(catalog, Counted.FINISHED, kind="sample") == 0
    joining = claim(catalog, job)
    catalog.leases.finish(joining, made(joining, 5000))
    assert counted(catalog, Counted.FINISHED, kind="sample", outcome="succeeded") == 1
    assert counted(catalog, Counted.FINISHED, kind="sample") == 1
    assert counted(catalog, Counted.ROWS, kind="sample") == 5000
    assert observed(catalog, Counted.DURATION, kind="sample") == 1
    assert observed(catalog, Counted.WAIT, kind="sample") == 1
    assert counted(catalog, Counted.ATTEMPTS, kind="sample") == 3
    assert counted(catalog, Counted.LEASE_LOSSES, kind="sample") == 0
    assert counted(catalog, Counted.RETRIES, kind="sample") == 0


def test_shards_count_their_lost_leases_and_their_parts_that_are_lost(
    catalog: Catalog, ready_model: Model
) -> None:
    job = in_shards(catalog, ready_model)
    first, second = catalog.all_jobs.shards(job.id)
    let_expire(catalog, claim(catalog, first, "dead"))
    for shard, rows in ((first, 4096), (second, 904)):
        claimed = claim(catalog, shard)
        catalog.leases.finish(claimed, made(claimed, rows))
    assert counted(catalog, Counted.LEASE_LOSSES, kind="sample") == 1
    assert counted(catalog, Counted.RETRIES, kind="sample", reason="lease_lost") == 1
    catalog.leases.requeue_lost_shards(claim(catalog, job), [1])
    assert counted(catalog, Counted.RETRIES, kind="sample", reason="part_lost") == 1
    assert counted(catalog, Counted.LEASE_LOSSES, kind="sample") == 1
    assert counted(catalog, Counted.FINISHED, kind="sample") == 0


def test_a_job_in_shards_that_is_cancelled_is_finished_once(
    catalog: Catalog, ready_model: Model
) -> None:
    job = in_shards(catalog, ready_model)
    first, _ = catalog.all_jobs.shards(job.id)
    running = claim(catalog, first)
    catalog.workspace("default").jobs.request_cancel(job.id)
    assert counted(catalog, Counted.FINISHED, kind="sample") == 0
    catalog.leases.finish(running, Cancelled())
    assert counted(catalog, Counted.FINISHED, kind="sample", outcome="cancelled") == 1
    assert counted(catalog, Counted.FINISHED, kind="sample") == 1


def test_of_a_job_in_shards_the_shards_wait_and_run(catalog: Catalog, ready_model: Model) -> None:
    job = in_shards(catalog, ready_model)
    time.sleep(0.02)
    waiting = state(catalog, JobKind.SAMPLE)
    assert (waiting.queued, waiting.running) == (2, 0)
    assert waiting.oldest_seconds > 0
    first, second = catalog.all_jobs.shards(job.id)
    claims = [claim(catalog, first)]
    begun = state(catalog, JobKind.SAMPLE)
    assert (begun.queued, begun.running, begun.oldest_seconds) == (1, 1, 0)
    claims.append(claim(catalog, second))
    for claimed, rows in zip(claims, (4096, 904), strict=True):
        catalog.leases.finish(claimed, made(claimed, rows))
    joined = state(catalog, JobKind.SAMPLE)
    assert (joined.queued, joined.running, joined.abandoned) == (0, 1, 0)


def test_what_is_rolled_back_is_not_counted(catalog: Catalog, dataset: Dataset) -> None:
    from catalog.database.counts import count

    def fail() -> None:
        with catalog.database.writing() as session:
            count(session, Counted.CREATED, kind="train")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert counted(catalog, Counted.CREATED) == 0


def test_counts_of_many_threads_add_up(catalog: Catalog) -> None:
    from catalog.database.counts import count

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
    assert counted(catalog, Counted.CREATED) == 4 * 10 * len(JobKind)


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
    claimed = claim(catalog, training)
    handed_back_at = time.monotonic()
    catalog.leases.hand_back(claimed)
    waited = state(catalog, JobKind.TRAIN).oldest_seconds
    assert waited <= time.monotonic() - handed_back_at


def test_orphans_that_are_due_are_counted(catalog: Catalog) -> None:
    catalog.orphans.reserve("datasets/a/", 60)
    catalog.orphans.add(["datasets/b/"])
    assert catalog.statistics.n_orphans() == 1


def test_a_job_carries_the_request_that_queued_it(catalog: Catalog, dataset: Dataset) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with in_request(RequestContext("order-17", parent)):
        job = catalog.workspace("default").jobs.enqueue_training(
            dataset_id=dataset.id, name="m", training={}
        )[1]
    assert (job.request_id, job.traceparent) == ("order-17", parent)
    catalog.workspace("default").jobs.request_cancel(job.id)
    with in_request(RequestContext("order-18")):
        again = catalog.workspace("default").jobs.retry(job.id)
    assert (again.request_id, again.traceparent) == ("order-18", None)
    assert claim(catalog, job).job.request_id == "order-18"


def test_shards_carry_the_request_that_queued_their_job(
    catalog: Catalog, ready_model: Model
) -> None:
    with in_request(
        RequestContext("order-17", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    ):
        job = in_shards(catalog, ready_model)
    asked = {(shard.request_id, shard.traceparent) for shard in catalog.all_jobs.shards(job.id)}
    assert asked == {(job.request_id, job.traceparent)} != {(None, None)}
    catalog.workspace("default").jobs.request_cancel(job.id)
    with in_request(RequestContext("order-18")):
        catalog.workspace("default").jobs.retry(job.id)
    assert {shard.request_id for shard in catalog.all_jobs.shards(job.id)} == {"order-18"}
