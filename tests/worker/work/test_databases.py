"""A database that a real worker learns and draws; killed in between, it comes to the same rows."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest

from catalog import Job, JobKind, JobStatus
from catalog.job_kinds import SampleSpec
from gcvae.files.table_archives import write_archive
from tests.linked_tables import FILES, KEYS, TRAINING, unzipped
from tests.running_worker import production, running_system


def train(system: Any, **more: Any) -> Job:
    """A queued training on the database of users and visits."""
    workspace = system.catalog.workspace("default")
    dataset_id = workspace.datasets.new_id()
    prefix = f"datasets/{dataset_id}/"
    file = io.BytesIO()
    contents = {name: text.encode() for name, text in FILES.items()}
    write_archive(file, [(n, lambda sink, c=c: sink.write(c)) for n, c in contents.items()])
    system.catalog.orphans.reserve(prefix, 60)
    published = system.store.publish(f"{prefix}table.zip", file.getvalue())
    sizes = {"users": 60, "visits": 180}
    workspace.datasets.add(
        dataset_id=dataset_id,
        name="shop",
        format="zip",
        rows=240,
        columns=8,
        schema=KEYS,
        sha256=published.sha256,
        size_bytes=published.size_bytes,
        object_key=published.key,
        warnings=[],
        tables=[
            {"name": name, "format": "csv", "rows": rows, "columns": 4, "schema": {"columns": []}}
            for name, rows in sizes.items()
        ],
    )
    model, job = workspace.jobs.enqueue_training(
        dataset_id=dataset_id, name="shop", training=TRAINING | more
    )
    assert model.kind == "database"
    system.dispatcher.send(job)
    return job


def drawn(system: Any, job: Job) -> dict[str, bytes]:
    """The files that the job's model draws by a job of its own."""
    spec = SampleSpec(rows=None, seed=7, format="csv", scale=1.5).to_json()
    jobs = system.catalog.workspace("default").jobs
    queued = jobs.enqueue(JobKind.SAMPLE, model_id=str(job.model_id), spec=spec)
    system.dispatcher.send(queued)
    done = system.finished(queued)
    assert done.status is JobStatus.SUCCEEDED, done.error
    result = system.catalog.workspace("default").results.get(str(done.result_id))
    return unzipped(system.store.read(result.object_key, result.sha256))


@pytest.fixture(scope="module")
def trained(real_system: Any) -> Job:
    """A training that has come to its end."""
    job: Job = real_system.finished(train(real_system))
    return job


@pytest.mark.slow
def test_a_killed_training_comes_to_the_rows_of_an_undisturbed_one(real_system: Any) -> None:
    """The second attempt continues from a checkpoint, and nothing of the first stays."""
    long_enough = {"max_steps": 200, "patience_steps": 3000}
    undisturbed = real_system.finished(train(real_system, **long_enough))
    assert undisturbed.status is JobStatus.SUCCEEDED, undisturbed.error
    job = train(real_system, **long_enough)
    real_system.wait(lambda: real_system.job(job).checkpoint_key is not None)
    real_system.child(job).kill()
    done = real_system.finished(job)
    assert (done.status, done.attempt) == (JobStatus.SUCCEEDED, 2), done.error
    assert done.progress["fraction"] == 1.0
    files = drawn(real_system, done)
    assert files.keys() == FILES.keys()
    assert files == drawn(real_system, undisturbed)
    assert real_system.orphans() == []


@pytest.mark.slow
def test_a_training_of_a_database_is_cancelled(real_system: Any) -> None:
    job = train(real_system, max_steps=5000, patience_steps=30_000)
    real_system.wait(lambda: real_system.job(job).progress.get("table"))
    began = time.monotonic()
    real_system.catalog.workspace("default").jobs.request_cancel(job.id)
    assert real_system.finished(job).status is JobStatus.CANCELLED
    assert time.monotonic() - began < 60
    assert real_system.orphans() == []


@pytest.mark.parametrize("table", ["users", None])
def test_one_table_is_a_file_and_all_are_a_zip_file(
    real_system: Any, trained: Job, table: str | None
) -> None:
    spec = SampleSpec(rows=None, seed=7, format="parquet", parents=9, table=table).to_json()
    jobs = real_system.catalog.workspace("default").jobs
    queued = jobs.enqueue(JobKind.SAMPLE, model_id=str(trained.model_id), spec=spec)
    real_system.dispatcher.send(queued)
    done = real_system.finished(queued)
    result = real_system.catalog.workspace("default").results.get(str(done.result_id))
    content = real_system.store.read(result.object_key, result.sha256)
    if table is None:
        files = unzipped(content)
        assert files.keys() == {"users.parquet", "visits.parquet"}
        for name, found in result.summary["tables"].items():
            start = found["offset"]
            assert content[start : start + found["size_bytes"]] == files[f"{name}.parquet"]
    else:
        assert content.startswith(b"PAR1")
        assert result.rows == 9


@pytest.mark.slow
def test_a_database_is_learned_and_drawn_on_the_servers_of_production(tmp_path: Path) -> None:
    with production() as urls, running_system(tmp_path, with_stand_in=False, urls=urls) as system:
        system.start_worker()
        job = system.finished(train(system))
        assert job.status is JobStatus.SUCCEEDED, job.error
        dataset = system.catalog.workspace("default").datasets.get(str(job.dataset_id))
        assert [table["name"] for table in dataset.tables or ()] == ["users", "visits"]
        assert drawn(system, job).keys() == FILES.keys()
        assert system.orphans() == []
