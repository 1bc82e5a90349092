"""Jobs with the real library: train, sample, score; and training that is killed in between."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd
import pytest
import torch

from catalog import Job, JobKind, JobStatus
from catalog.job_kinds import ImputeSpec, SampleSpec, ScoreSpec, TableSpec
from catalog.object_keys import input_prefix
from gcvae.files.tables import read_table
from gcvae.profiling.infer import infer_schema
from models_store.manifests import Manifest

_ROWS = [f"{i % 37 / 10:.1f},{'yes' if i * 7 % 11 < 4 else 'no'},{i * i % 101}" for i in range(300)]
TABLE = ("height,smoker,weight\n" + "\n".join(_ROWS) + "\n").encode()
TRAINING = {"preset": "paper-gcvae", "max_steps": 300, "patience_steps": 3000, "seed": 3}


def _train(system: Any, **more: Any) -> Any:
    schema = infer_schema(read_table(TABLE)).schema.to_json()
    return system.train(table=TABLE, schema=schema, **TRAINING | more)


@pytest.fixture(scope="module")
def trained(real_system: Any) -> Any:
    """A finished training job that nothing disturbed."""
    job = real_system.finished(_train(real_system))
    assert job.status is JobStatus.SUCCEEDED, job.error
    return job


def test_the_artifact_is_a_model_with_its_schema_and_record(real_system: Any, trained: Any) -> None:
    model = real_system.model(trained)
    assert [column["name"] for column in model.schema["columns"]] == ["height", "smoker", "weight"]
    assert model.record["rows"] == 300
    assert trained.progress["phase"] == "finishing"
    assert real_system.orphans() == []


def test_training_and_its_report_killed_in_between_are_those_of_an_undisturbed_worker(
    real_system: Any,
) -> None:
    """The attempt that resumes holds back the same rows, or the report would not know the table."""
    from gcvae import Synthesizer

    job = _train(real_system, report_share=0.2)
    real_system.wait(lambda: _has_checkpoint_of(real_system.job(job), 1), 120)
    real_system.child(job).kill()
    done = real_system.finished(job, 120)
    assert (done.status, done.attempt) == (JobStatus.SUCCEEDED, 2), done.error
    assert real_system.model(job).record["rows"] == 240
    jobs = real_system.catalog.workspace("default").jobs.list(
        kind=JobKind.REPORT, model_id=job.model_id
    )
    [report] = jobs.items
    real_system.child(report).kill()
    done = real_system.finished(report, 120)
    assert (done.status, done.attempt) == (JobStatus.SUCCEEDED, 2), done.error
    document = json.loads(_content(real_system, report))
    synthesizer = Synthesizer.from_bytes(real_system.artifact(job))
    expected = synthesizer.report(read_table(TABLE), seed=TRAINING["seed"]).to_json()
    assert document == json.loads(json.dumps(expected))
    assert (document["rows"]["unseen"], done.progress["phase"]) == (60, "finishing")
    assert real_system.orphans() == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks for CUDA where there is none")
def test_a_job_that_asks_for_a_gpu_fails_where_its_worker_has_none(real_system: Any) -> None:
    done = real_system.finished(_train(real_system, device="cuda"))
    assert (done.status, done.attempt) == (JobStatus.FAILED, 1)
    assert done.error["code"] == "input"
    assert "the worker of this job has no GPU" in done.error["message"]
    assert done.error["problems"][0]["pointer"] == "/training/device"


def test_a_sample_job_gives_the_rows_that_the_library_draws(real_system: Any, trained: Any) -> None:
    from gcvae import Synthesizer
    from gcvae.files.table_stream import stream_table

    spec = SampleSpec(rows=5000, seed=1, format="csv")
    job = real_system.catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=trained.model_id, spec=spec.to_json()
    )
    real_system.dispatcher.send(job)
    assert real_system.finished(job).status is JobStatus.SUCCEEDED
    result = real_system.catalog.workspace("default").results.get(job.result_id)
    content = real_system.store.read(result.object_key, result.sha256)
    synthesizer = Synthesizer.from_bytes(real_system.artifact(trained))
    blocks = synthesizer.sample_blocks(5000, seed=1)
    assert content == b"".join(stream_table(blocks, synthesizer.schema, "csv"))
    assert (result.rows, result.media_type) == (5000, "text/csv")
    assert real_system.orphans() == []


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_score_job_scores_every_row(real_system: Any, trained: Any, form: str) -> None:
    job = _enqueue_scores(real_system, trained, TABLE, form)
    assert real_system.finished(job).status is JobStatus.SUCCEEDED, real_system.job(job).error
    result = real_system.catalog.workspace("default").results.get(job.result_id)
    content = real_system.store.read(result.object_key, result.sha256).decode()
    if form == "json":
        document = json.loads(content)
        rows, totals = document["scores"], document["totals"]
        assert totals == result.summary
        assert "nats" in document["measure"]
    else:
        rows = list(csv.DictReader(io.StringIO(content)))
    assert len(rows) == result.rows == 300
    bounds = [float(row["log_likelihood"]) for row in rows]
    assert all(math.isfinite(bound) for bound in bounds)
    assert sum(bounds) == pytest.approx(result.summary["log_likelihood"])
    assert real_system.orphans() == []


def test_a_table_is_completed_in_shards_as_it_is_in_one(real_system: Any, trained: Any) -> None:
    """The worker makes the last rows by themselves, from row groups of their own."""
    from gcvae import Synthesizer
    from gcvae.sampling.imputation_stream import stream_completed

    cells = [row.split(",") for row in (_ROWS * 2)[:536]]
    frame = pd.DataFrame(cells, columns=["height", "smoker", "weight"])
    file = io.BytesIO()
    blank = frame.index.to_numpy()[:, None] % [3, 4, 5] == 0
    frame.mask(blank).to_parquet(file, row_group_size=100)
    shards = [range(512), range(512, 536)]
    table, spec = file.getvalue(), partial(ImputeSpec, draws=2, seed=4, format="json")
    jobs = [
        real_system.finished(_enqueue(real_system, trained, JobKind.IMPUTE, table, spec, cut))
        for cut in ([], shards)
    ]
    assert [job.status for job in jobs] == [JobStatus.SUCCEEDED] * 2, jobs[-1].error
    whole, joined = (_content(real_system, job) for job in jobs)
    assert joined == whole
    synthesizer = Synthesizer.from_bytes(real_system.artifact(trained))
    blocks = synthesizer.impute_blocks(read_table(table), 2, 4)
    assert whole == b"".join(stream_completed(blocks, synthesizer.schema, "json"))
    result = real_system.catalog.workspace("default").results.get(jobs[1].result_id)
    assert (result.rows, result.summary) == (1072, {"draws": 2, "seed": 4})
    parts = [shard.part["rows"] for shard in real_system.catalog.all_jobs.shards(jobs[1].id)]
    assert parts == [1024, 48]


def _content(system: Any, job: Job) -> bytes:
    result = system.catalog.workspace("default").results.get(job.result_id)
    if result.manifest_sha256 is None:
        return bytes(system.store.read(result.object_key, result.sha256))
    manifest = Manifest.read(system.store, result.object_key, result.manifest_sha256)
    return b"".join(manifest.stream(system.store))


def test_a_table_that_does_not_fit_the_model_is_refused_by_name(
    real_system: Any, trained: Any
) -> None:
    job = _enqueue_scores(real_system, trained, b"height,smoker,colour\n1.0,yes,red\n", "csv")
    done = real_system.finished(job)
    assert done.status is JobStatus.FAILED
    assert done.error["code"] == "input"
    assert "colour" in done.error["message"]


def _has_checkpoint_of(job: Job, attempt: int) -> bool:
    assert not job.status.is_final, "it was over before it was killed"
    return job.checkpoint_key is not None and f"/attempts/{attempt}/" in job.checkpoint_key


def _enqueue_scores(system: Any, trained: Any, table: bytes, form: str) -> Any:
    spec = partial(ScoreSpec, draws=5, seed=0, format=form)
    return _enqueue(system, trained, JobKind.SCORE, table, spec)


def _enqueue(
    system: Any,
    trained: Any,
    kind: JobKind,
    table: bytes,
    make_spec: Callable[..., TableSpec],
    shards: Sequence[range] = (),
) -> Any:
    job_id = system.catalog.workspace("default").jobs.new_id()
    system.catalog.orphans.reserve(input_prefix(job_id), 60)
    published = system.store.publish(f"{input_prefix(job_id)}table", table)
    spec = make_spec(published.key, published.sha256, "csv")
    job = system.catalog.workspace("default").jobs.enqueue(
        kind, model_id=trained.model_id, spec=spec.to_json(), job_id=job_id, shards=shards
    )
    system.dispatcher.send(job)
    return job
