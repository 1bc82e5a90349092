"""Jobs in shards: what happens to one happens to the others and to their job as it should."""

from __future__ import annotations

import threading

import pytest

from catalog import (
    Cancelled,
    Catalog,
    Claim,
    Failed,
    Job,
    JobKind,
    JobStatus,
    Model,
    Produced,
    Queue,
)
from catalog.errors import ConflictError, LeaseLostError, NotFoundError
from catalog.object_keys import output_prefix
from tests.claims import claim_job, let_expire
from tests.wordings import refuses

_ROWS = [range(0, 4096), range(4096, 8192), range(8192, 9000)]
_SHA256 = "0" * 64
_ERROR = Failed("process_killed", "the job's process was killed by SIGKILL")


@pytest.fixture
def job(catalog: Catalog, ready_model: Model) -> Job:
    """A queued job of three shards."""
    spec = {"rows": 9000, "seed": 1, "format": "csv"}
    for prefix in catalog.orphans.take_due():
        catalog.orphans.forget(prefix)
    return catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=ready_model.id, spec=spec, shards=_ROWS
    )


def _claimed(catalog: Catalog, seconds: float = 10) -> Claim:
    claim = catalog.leases.claim_next([Queue.COMPUTE], "worker", seconds)
    assert claim is not None
    return claim


def _produced(claim: Claim, manifest: str | None = None) -> Produced:
    key = f"{output_prefix(claim.job, claim.attempt)}rows.csv"
    rows = claim.job.spec.get("end_row", 9000) - claim.job.spec.get("first_row", 0)
    return Produced(key, _SHA256, 5 * rows, "text/csv", rows, manifest_sha256=manifest)


def _finish(catalog: Catalog, claim: Claim) -> None:
    catalog.leases.finish(claim, _produced(claim))


def _statuses(catalog: Catalog, job: Job) -> list[str]:
    return [shard.status.value for shard in catalog.all_jobs.shards(job.id)]


def _swept(catalog: Catalog) -> set[str]:
    return {prefix for prefix in catalog.orphans.take_due() if prefix.startswith("results/")}


def test_shards_are_done_each_once_and_then_the_job_itself(catalog: Catalog, job: Job) -> None:
    claims = [_claimed(catalog) for _ in _ROWS]
    assert catalog.leases.claim_next([Queue.COMPUTE], "idle", 10) is None
    assert [claim.job.spec["first_row"] for claim in claims] == [0, 4096, 8192]
    assert {claim.job.parent_id for claim in claims} == {job.id}
    assert catalog.workspace("default").jobs.get(job.id).status is JobStatus.RUNNING
    for claim in claims:
        assert claim_job(catalog, job.id, "early", 10) is None
        _finish(catalog, claim)
    joining = _claimed(catalog)
    assert (joining.job_id, joining.job.n_shards, joining.job.open_shards) == (job.id, 3, 0)
    parts = [shard.part for shard in catalog.all_jobs.shards(job.id)]
    assert [part and part["rows"] for part in parts] == [4096, 4096, 808]
    catalog.leases.finish(joining, _produced(joining, manifest="1" * 64))
    assert catalog.workspace("default").jobs.get(job.id).status is JobStatus.SUCCEEDED
    assert catalog.workspace("default").results.get(str(job.result_id)).manifest_sha256 == "1" * 64


def test_users_see_one_job(catalog: Catalog, job: Job, ready_model: Model) -> None:
    assert [
        seen.id for seen in catalog.workspace("default").jobs.list(kind=JobKind.SAMPLE).items
    ] == [job.id]
    assert catalog.workspace("default").jobs.count([JobStatus.QUEUED]) == 1
    assert catalog.workspace("default").jobs.find_by_result(str(job.result_id)).id == job.id
    shard = catalog.all_jobs.shards(job.id)[0]
    with pytest.raises(NotFoundError):
        catalog.workspace("default").jobs.request_cancel(shard.id)
    with pytest.raises(NotFoundError):
        catalog.workspace("default").jobs.retry(shard.id)


def test_progress_of_the_whole_is_that_of_its_shards(catalog: Catalog, job: Job) -> None:
    first, second = _claimed(catalog), _claimed(catalog)
    version = catalog.workspace("default").jobs.get(job.id).version
    catalog.leases.heartbeat(first, {"phase": "sampling", "fraction": 0.6})
    now = catalog.workspace("default").jobs.get(job.id)
    assert now.progress == {"phase": "sampling", "fraction": pytest.approx(0.98 * 0.2)}
    assert now.version > version
    _finish(catalog, second)
    assert catalog.workspace("default").jobs.get(job.id).progress["fraction"] == pytest.approx(
        0.98 * 1.6 / 3
    )


def test_progress_of_the_whole_does_not_fall_when_a_shard_is_done_again(
    catalog: Catalog, job: Job
) -> None:
    first, second = _claimed(catalog), _claimed(catalog)
    catalog.leases.heartbeat(first, {"phase": "sampling", "fraction": 0.9})
    before = catalog.workspace("default").jobs.get(job.id).progress["fraction"]
    catalog.leases.heartbeat(first, {"phase": "preparing", "fraction": 0.0})
    assert catalog.workspace("default").jobs.get(job.id).progress["fraction"] == before
    _finish(catalog, second)
    assert catalog.workspace("default").jobs.get(job.id).progress["fraction"] >= before


def test_the_shard_of_a_dead_worker_is_done_again_alone(catalog: Catalog, job: Job) -> None:
    lost, *others = [_claimed(catalog) for _ in _ROWS]
    for claim in others:
        _finish(catalog, claim)
    let_expire(catalog, lost)
    again = _claimed(catalog)
    assert (again.job_id, again.attempt) == (lost.job_id, 2)
    with pytest.raises(LeaseLostError):
        _finish(catalog, lost)
    _finish(catalog, again)
    assert [shard.attempt for shard in catalog.all_jobs.shards(job.id)] == [2, 1, 1]
    assert _swept(catalog) == {output_prefix(lost.job, 1)}
    assert _claimed(catalog).job_id == job.id


def test_of_two_joins_one_publishes(catalog: Catalog, job: Job) -> None:
    for _ in _ROWS:
        _finish(catalog, _claimed(catalog))
    first = _claimed(catalog)
    let_expire(catalog, first)
    second = _claimed(catalog)
    catalog.leases.finish(second, _produced(second, manifest="1" * 64))
    with pytest.raises(LeaseLostError):
        catalog.leases.finish(first, _produced(first, manifest="2" * 64))
    assert catalog.workspace("default").results.get(str(job.result_id)).manifest_sha256 == "1" * 64
    assert _swept(catalog) == {output_prefix(first.job, 1)}


def test_shards_that_end_at_once_let_their_job_go_on_once(catalog: Catalog, job: Job) -> None:
    claims = [_claimed(catalog) for _ in _ROWS]
    workers = [threading.Thread(target=_finish, args=(catalog, claim)) for claim in claims]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert catalog.workspace("default").jobs.get(job.id).open_shards == 0
    assert _claimed(catalog).job_id == job.id
    assert catalog.leases.claim_next([Queue.COMPUTE], "another", 10) is None


def test_cancelling_closes_what_waits_and_stops_what_runs(catalog: Catalog, job: Job) -> None:
    running = _claimed(catalog)
    asked = catalog.workspace("default").jobs.request_cancel(job.id)
    assert (asked.status, asked.cancel_requested) == (JobStatus.RUNNING, True)
    assert catalog.workspace("default").jobs.request_cancel(job.id).version == asked.version
    assert _statuses(catalog, job) == ["running", "cancelled", "cancelled"]
    assert catalog.leases.heartbeat(running).cancel_requested
    catalog.leases.finish(running, Cancelled())
    assert catalog.workspace("default").jobs.get(job.id).status is JobStatus.CANCELLED
    assert output_prefix(running.job, 1) in _swept(catalog)


def test_a_job_none_of_whose_shards_runs_is_cancelled_at_once(catalog: Catalog, job: Job) -> None:
    assert catalog.workspace("default").jobs.request_cancel(job.id).status is JobStatus.CANCELLED
    assert _statuses(catalog, job) == ["cancelled"] * 3


def test_a_cancelled_shard_whose_worker_died_ends_its_job(catalog: Catalog, job: Job) -> None:
    running = _claimed(catalog)
    catalog.workspace("default").jobs.request_cancel(job.id)
    let_expire(catalog, running)
    assert catalog.leases.close_abandoned() == [running.job_id]
    assert catalog.workspace("default").jobs.get(job.id).status is JobStatus.CANCELLED


def test_a_job_that_waits_to_be_joined_can_be_cancelled(catalog: Catalog, job: Job) -> None:
    for _ in _ROWS:
        _finish(catalog, _claimed(catalog))
    catalog.workspace("default").jobs.request_cancel(job.id)
    assert catalog.leases.close_abandoned() == [job.id]
    assert catalog.workspace("default").jobs.get(job.id).status is JobStatus.CANCELLED
    prefixes = {output_prefix(shard, 1) for shard in catalog.all_jobs.shards(job.id)}
    assert _swept(catalog) == prefixes


def test_a_shard_that_fails_fails_its_job_and_stops_the_others(catalog: Catalog, job: Job) -> None:
    done, failing, running = [_claimed(catalog) for _ in _ROWS]
    _finish(catalog, done)
    catalog.leases.finish(failing, Failed("input", "no such level", ({"pointer": "/given"},)))
    assert catalog.workspace("default").jobs.get(job.id).status is JobStatus.RUNNING
    assert catalog.leases.heartbeat(running).cancel_requested
    catalog.leases.finish(running, Cancelled())
    failed = catalog.workspace("default").jobs.get(job.id)
    assert failed.status is JobStatus.FAILED
    assert failed.error == {
        "code": "input", "message": "no such level", "problems": [{"pointer": "/given"}],
    }  # fmt: skip
    swept = _swept(catalog)
    assert {output_prefix(shard, 1) for shard in catalog.all_jobs.shards(job.id)} <= swept


def test_a_hopeless_shard_fails_its_job(catalog: Catalog, job: Job) -> None:
    shard = catalog.all_jobs.shards(job.id)[1]
    for _ in range(3):
        claim = claim_job(catalog, shard.id, "worker", 10)
        assert claim is not None
        catalog.leases.release(claim, _ERROR)
    failed = catalog.workspace("default").jobs.get(job.id)
    assert failed.status is JobStatus.FAILED
    assert failed.error is not None
    assert failed.error["code"] == "attempts_used_up"


def test_a_failed_job_is_retried_with_all_its_shards(catalog: Catalog, job: Job) -> None:
    for _ in _ROWS:
        _finish(catalog, _claimed(catalog))
    joining = _claimed(catalog)
    catalog.leases.finish(joining, Failed("internal", "no"))
    again = catalog.workspace("default").jobs.retry(job.id)
    assert (again.status, again.open_shards, again.error) == (JobStatus.QUEUED, 3, None)
    swept = _swept(catalog)
    claims = [_claimed(catalog) for _ in _ROWS]
    assert [claim.attempt for claim in claims] == [2, 2, 2]
    assert not {output_prefix(claim.job, claim.attempt) for claim in claims} & swept
    for claim in claims:
        _finish(catalog, claim)
    assert _claimed(catalog).attempt == 2


def test_parts_that_the_store_lost_are_made_again(catalog: Catalog, job: Job) -> None:
    for _ in _ROWS:
        _finish(catalog, _claimed(catalog))
    joining = _claimed(catalog)
    catalog.leases.requeue_lost_shards(joining, [1])
    with pytest.raises(LeaseLostError):
        catalog.leases.finish(joining, _produced(joining))
    assert _statuses(catalog, job) == ["succeeded", "queued", "succeeded"]
    again = _claimed(catalog)
    assert (again.job.spec["number"], again.attempt) == (1, 2)
    assert catalog.leases.claim_next([Queue.COMPUTE], "idle", 10) is None
    _finish(catalog, again)
    assert _claimed(catalog).job_id == job.id


def test_parts_that_are_joined_into_a_file_are_swept(catalog: Catalog, job: Job) -> None:
    for _ in _ROWS:
        _finish(catalog, _claimed(catalog))
    joining = _claimed(catalog)
    catalog.leases.finish(joining, _produced(joining))
    parts = {output_prefix(shard, 1) for shard in catalog.all_jobs.shards(job.id)}
    assert _swept(catalog) == parts


def test_results_that_have_been_kept_long_enough_are_deleted(catalog: Catalog, job: Job) -> None:
    for _ in _ROWS:
        _finish(catalog, _claimed(catalog))
    joining = _claimed(catalog)
    catalog.leases.finish(joining, _produced(joining, manifest="1" * 64))
    assert catalog.retention.delete_results_older_than(3600) == 0
    assert catalog.retention.delete_results_older_than(-1) == 1
    with pytest.raises(NotFoundError):
        catalog.workspace("default").results.get(str(job.result_id))
    assert _swept(catalog) == {f"results/{job.result_id}/"}


def test_a_model_is_busy_while_shards_are_open(catalog: Catalog, job: Job) -> None:
    with refuses(ConflictError, names=job.id):
        catalog.workspace("default").models.delete(str(job.model_id))


def test_the_message_of_every_open_shard_is_sent_again(catalog: Catalog, job: Job) -> None:
    catalog.leases.make_due()
    shards = {shard.id for shard in catalog.all_jobs.shards(job.id)}
    assert {due.id for due in catalog.leases.take_due()} == shards
