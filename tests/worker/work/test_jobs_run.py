"""Jobs that a worker runs, and those that go wrong while it stays well."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from catalog import JobStatus, ModelStatus
from tests.lengths import first_of
from tests.running_worker import family

QUICK = {"steps": 20, "step_seconds": 0.01}
SLOW = {"steps": 400, "step_seconds": 0.05}


@pytest.fixture(scope="module", params=first_of("production", "embedded"))
def anywhere(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    start_system: Callable[..., AbstractContextManager[Any]],
) -> Iterator[Any]:
    """A system with one running worker: on SQLite, the folder broker and a folder, and on
    PostgreSQL, Redis and S3.
    """
    with start_system(request.param, tmp_path_factory.mktemp("anywhere")) as system:
        system.start_worker()
        yield system


def test_a_trained_model_is_published_with_its_record(anywhere: Any) -> None:
    job = anywhere.finished(anywhere.train(**QUICK))
    assert (job.status, job.error, job.attempt) == (JobStatus.SUCCEEDED, None, 1)
    assert job.progress["phase"] == "training"
    model = anywhere.model(job)
    assert model.status is ModelStatus.READY
    assert model.record == {"steps": 20, "bound": None}
    assert len(anywhere.artifact(job)) == 64
    assert anywhere.orphans() == []


def test_a_running_job_shows_its_progress_and_its_process(anywhere: Any) -> None:
    job = anywhere.train(**SLOW)
    child = anywhere.child(job)
    assert "gcvae-job" in child.cmdline()
    first = anywhere.wait(lambda: anywhere.job(job).progress.get("fraction"))
    later = anywhere.wait(lambda: (f := anywhere.job(job).progress["fraction"]) > first and f)
    assert 0 < first < later < 1
    anywhere.catalog.workspace("default").jobs.request_cancel(job.id)
    assert anywhere.finished(job).status is JobStatus.CANCELLED


def test_a_cancelled_job_stops_by_itself(anywhere: Any) -> None:
    job = anywhere.train(**SLOW)
    anywhere.with_checkpoint(job)
    anywhere.catalog.workspace("default").jobs.request_cancel(job.id)
    anywhere.catalog.workspace("default").jobs.request_cancel(job.id)
    assert anywhere.finished(job).status is JobStatus.CANCELLED
    lines = (anywhere.folder / "worker.log").read_text().splitlines()
    assert not [line for line in lines if job.id in line and "is killed" in line]
    assert anywhere.model(job).status is ModelStatus.CANCELLED
    assert anywhere.orphans() == []


@pytest.mark.slow
def test_a_job_that_does_not_stop_by_itself_is_killed(anywhere: Any) -> None:
    job = anywhere.train(steps=2, step_seconds=0.01, fault="hangs")
    child = anywhere.child(job)
    anywhere.wait(lambda: anywhere.job(job).progress)
    anywhere.catalog.workspace("default").jobs.request_cancel(job.id)
    assert anywhere.finished(job).status is JobStatus.CANCELLED
    anywhere.wait(lambda: not child.is_running())


@pytest.mark.slow
def test_a_poison_job_is_given_up_and_the_next_one_is_done(anywhere: Any) -> None:
    poison = anywhere.train(**QUICK, fault="killed")
    job = anywhere.finished(poison)
    assert (job.status, job.attempt) == (JobStatus.FAILED, 3)
    assert job.error["code"] == "attempts_used_up"
    assert "3 attempts" in job.error["message"]
    assert "SIGKILL" in job.error["message"]
    assert anywhere.model(job).status is ModelStatus.FAILED
    assert anywhere.finished(anywhere.train(**QUICK)).status is JobStatus.SUCCEEDED
    assert anywhere.orphans() == []


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        ("raises", "internal", "ZeroDivisionError: nobody foresaw this"),
        ("diverges", "diverged", "the loss is not finite at step 7"),
    ],
)
def test_what_would_go_wrong_again_is_not_tried_again(
    anywhere: Any, fault: str, code: str, message: str
) -> None:
    job = anywhere.finished(anywhere.train(**QUICK, fault=fault))
    assert (job.status, job.attempt) == (JobStatus.FAILED, 1)
    assert (job.error["code"], job.error["message"]) == (code, message)


@pytest.mark.slow
def test_a_job_that_runs_out_of_gpu_memory_goes_on_with_half_its_batch(anywhere: Any) -> None:
    job = anywhere.finished(anywhere.train(**QUICK, batch_size=64, largest_batch=32))
    assert (job.status, job.attempt, job.smaller_batch) == (JobStatus.SUCCEEDED, 2, True)
    assert "the next attempt takes half the batch" in (anywhere.folder / "worker.log").read_text()


@pytest.mark.slow
def test_a_job_that_does_so_again_says_what_to_set(anywhere: Any) -> None:
    job = anywhere.finished(anywhere.train(**QUICK, batch_size=64, largest_batch=31))
    assert (job.status, job.attempt, job.smaller_batch) == (JobStatus.FAILED, 2, True)
    assert job.error["code"] == "gpu_out_of_memory"
    assert job.error["message"] == (
        "GPU memory is too small for batches of 32 rows: CUDA out of memory. Tried to "
        "allocate 20.00 GiB.; set training.batch_size below 32, fewer or narrower layers "
        "(n_hidden_layers, d_hidden, d_column), or device cpu"
    )
    assert anywhere.orphans() == []


@pytest.mark.slow
def test_two_slots_do_two_jobs_at_once(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCVAE_CPU_SLOTS", "2")
    system.start_worker()
    jobs = [system.train(**SLOW) for _ in range(2)]
    children = [system.child(job) for job in jobs]
    servers = [child.parent() for child in children]
    assert all(server.environ()["CUDA_VISIBLE_DEVICES"] == "" for server in servers)
    assert len({server.pid for server in servers}) == 2


@pytest.mark.slow
def test_a_worker_leaves_the_jobs_of_other_queues(
    system: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCVAE_QUEUES", "compute")
    computing = system.start_worker()
    system.wait(lambda: len(family(computing.pid)) >= 3)
    job = system.train(**SLOW)
    monkeypatch.setenv("GCVAE_QUEUES", "train")
    training = system.start_worker()
    assert training.pid in {process.pid for process in system.child(job).parents()}


def test_a_bad_table_is_said_to_be_bad(anywhere: Any) -> None:
    job = anywhere.finished(anywhere.train(**QUICK, table=b""))
    assert job.error["code"] == "input"
    assert job.error["problems"][0]["message"] == "the file has no rows"
    assert anywhere.model(job).status is ModelStatus.FAILED
    assert anywhere.orphans() == []


@pytest.mark.slow
def test_a_message_delivered_many_times_runs_once(anywhere: Any) -> None:
    job = anywhere.train(**QUICK)
    for _ in range(5):
        anywhere.dispatcher.send(job)
    assert anywhere.finished(job).attempt == 1
    after = anywhere.finished(anywhere.train(**QUICK))
    assert after.status is JobStatus.SUCCEEDED
    assert anywhere.job(job) == anywhere.finished(job)


def test_a_job_whose_message_was_never_sent_is_done(anywhere: Any) -> None:
    job = anywhere.finished(anywhere.train(**QUICK, send=False))
    assert job.status is JobStatus.SUCCEEDED


def test_a_retried_job_is_done_again(anywhere: Any) -> None:
    job = anywhere.train(**SLOW)
    anywhere.with_checkpoint(job)
    anywhere.catalog.workspace("default").jobs.request_cancel(job.id)
    anywhere.finished(job)
    anywhere.catalog.workspace("default").jobs.retry(job.id)
    anywhere.child(job).send_signal(signal.SIGKILL)
    anywhere.wait(lambda: anywhere.job(job).attempt >= 3)
    anywhere.catalog.workspace("default").jobs.request_cancel(job.id)
    assert anywhere.finished(job).status is JobStatus.CANCELLED
    assert anywhere.orphans() == []
