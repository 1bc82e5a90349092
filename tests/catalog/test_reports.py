"""Reports in the records: queued with the model they judge, replaced, and gone with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog import Cancelled, Catalog, Claim, Job, JobKind, JobStatus, Model, Produced, Queue
from catalog.errors import ConflictError, LeaseLostError, NotFoundError
from catalog.job_kinds import ReportSpec
from tests.catalog.conftest import trained
from tests.claims import claim_job
from tests.wordings import refuses

_SHA256 = "0" * 64
_ESTIMATE = {"seconds": 30.0, "memory_bytes": 10**9}


@pytest.fixture
def waiting(catalog: Catalog, training: Job) -> Job:
    """The report that waits as its model gets ready."""
    claim = claim_job(catalog, training.id, "trainer", 10)
    assert claim is not None
    spec = ReportSpec(str(training.dataset_id), seed=3)
    next_job = {"kind": "report", "spec": spec.to_json(), "estimate": _ESTIMATE}
    catalog.leases.finish(claim, replace(trained(training), next_job=next_job))
    [report] = catalog.workspace("default").jobs.list(kind=JobKind.REPORT).items
    return report


def _claimed(catalog: Catalog, job: Job) -> Claim:
    claim = claim_job(catalog, job.id, "worker", 10)
    assert claim is not None
    return claim


def _finish(catalog: Catalog, job: Job, summary: dict[str, str]) -> str:
    """Have the report made; the key of its bytes."""
    claim = _claimed(catalog, job)
    key = f"results/{job.result_id}/attempts/1/report.json"
    made = Produced(key, _SHA256, 9, "application/json", 5, summary)
    catalog.leases.finish(claim, made)
    return key


def _asked(catalog: Catalog, model: Model) -> Job:
    spec = ReportSpec(str(model.dataset_id), seed=0).to_json()
    dataset_id = model.dataset_id
    return catalog.workspace("default").jobs.enqueue(
        JobKind.REPORT, model_id=model.id, spec=spec, dataset_id=dataset_id
    )


def test_the_report_is_queued_as_its_model_gets_ready(
    catalog: Catalog, training: Job, waiting: Job
) -> None:
    assert (waiting.model_id, waiting.dataset_id) == (training.model_id, training.dataset_id)
    assert (waiting.workspace, waiting.status) == (training.workspace, JobStatus.QUEUED)
    assert waiting.queue is Queue.COMPUTE
    assert ReportSpec.from_json(waiting.spec).seed == 3
    assert waiting.estimate == _ESTIMATE
    assert waiting in catalog.leases.take_due()
    created = [c for c in catalog.statistics.counts() if c.labels == {"kind": "report"}]
    assert [(count.name, count.value) for count in created] == [("jobs_created", 1.0)]


def test_no_report_is_queued_where_the_attempt_has_lost_its_training(
    catalog: Catalog, training: Job
) -> None:
    late = claim_job(catalog, training.id, "late", -1)
    assert late is not None
    assert claim_job(catalog, training.id, "heir", 10) is not None
    spec = ReportSpec(str(training.dataset_id), seed=3).to_json()
    ready = replace(
        trained(training), next_job={"kind": "report", "spec": spec, "estimate": _ESTIMATE}
    )
    with pytest.raises(LeaseLostError):
        catalog.leases.finish(late, ready)
    assert catalog.workspace("default").jobs.list(kind=JobKind.REPORT).items == []


def test_whatever_somebody_asked_for_is_done_before_a_report_that_nobody_asked_for(
    catalog: Catalog, waiting: Job
) -> None:
    asked = catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=str(waiting.model_id), spec={}
    )
    order = [catalog.leases.claim_next([Queue.COMPUTE], "worker", 10) for _ in range(2)]
    assert [claim and claim.job_id for claim in order] == [asked.id, waiting.id]


def test_a_new_report_takes_the_place_of_the_one_before(catalog: Catalog, waiting: Job) -> None:
    first = _finish(catalog, waiting, {"of": "first"})
    model = catalog.workspace("default").models.get(str(waiting.model_id))
    again = _asked(catalog, model)
    found = catalog.workspace("default").results.of_models(JobKind.REPORT, [model.id])
    assert found[model.id].summary == {"of": "first"}, "until the other is there"
    second = _finish(catalog, again, {"of": "second"})
    assert (
        catalog.workspace("default")
        .results.of_models(JobKind.REPORT, [model.id])[model.id]
        .object_key
        == second
    )
    with pytest.raises(NotFoundError):
        catalog.workspace("default").results.get(str(waiting.result_id))
    assert f"results/{waiting.result_id}/" in catalog.orphans.take_due()
    assert first not in [kept.key for kept in catalog.inventory.kept()]
    assert second in [kept.key for kept in catalog.inventory.kept()]


def test_age_takes_no_report_away_and_workspaces_do_not_see_each_others(
    catalog: Catalog, waiting: Job
) -> None:
    _finish(catalog, waiting, {})
    assert catalog.retention.delete_results_older_than(-1) == 0
    model_id = str(waiting.model_id)
    assert set(
        catalog.workspace("default").results.of_models(JobKind.REPORT, [model_id, "mdl_none"])
    ) == {model_id}
    assert catalog.workspace("other").results.of_models(JobKind.REPORT, [model_id]) == {}
    assert catalog.workspace("default").results.of_models(JobKind.SAMPLE, [model_id]) == {}


@pytest.mark.parametrize("is_running", [False, True])
def test_a_model_is_deleted_though_its_report_is_being_made(
    catalog: Catalog, waiting: Job, *, is_running: bool
) -> None:
    claim = _claimed(catalog, waiting) if is_running else None
    prefixes = catalog.workspace("default").models.delete(str(waiting.model_id))
    assert f"jobs/{waiting.id}/" in prefixes
    assert catalog.workspace("default").jobs.get(waiting.id).status is JobStatus.CANCELLED
    if claim is not None:
        assert not catalog.leases.heartbeat(claim).alive
        with pytest.raises(LeaseLostError):
            catalog.leases.finish(claim, Produced("k", _SHA256, 1, "application/json", 1))
        assert f"results/{waiting.result_id}/attempts/1/" in catalog.orphans.take_due()


def test_a_model_is_not_deleted_while_somebody_draws_from_it_and_its_report_goes_on(
    catalog: Catalog, waiting: Job
) -> None:
    sample = catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=str(waiting.model_id), spec={}
    )
    with refuses(ConflictError, names=sample.id):
        catalog.workspace("default").models.delete(str(waiting.model_id))
    assert catalog.workspace("default").jobs.get(waiting.id).status is JobStatus.QUEUED


def test_a_report_whose_table_is_deleted_is_not_tried_again(catalog: Catalog, waiting: Job) -> None:
    catalog.leases.finish(_claimed(catalog, waiting), Cancelled())
    assert catalog.workspace("default").jobs.retry(waiting.id).status is JobStatus.QUEUED
    catalog.workspace("default").jobs.request_cancel(waiting.id)
    catalog.workspace("default").datasets.delete(str(waiting.dataset_id))
    with refuses(ConflictError):
        catalog.workspace("default").jobs.retry(waiting.id)
