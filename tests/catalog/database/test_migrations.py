"""Migrations with data in the tables: from the first release's schema to this one, and back."""

from __future__ import annotations

import json
import time
from typing import Any

from sqlalchemy import text

from catalog import Catalog, JobKind, JobStatus, Produced, Queue, upgrade
from catalog.database.engine import Database
from catalog.database.migrate import downgrade
from catalog.idempotency import Made
from catalog.job_kinds import ReportSpec
from tests.claims import claim_job

_FIRST = "0001"
_NOW = time.time()
_SHA256 = "0" * 64

_ROWS: dict[str, list[dict[str, Any]]] = {
    "datasets": [
        {
            "id": "ds_1", "workspace": "default", "name": "table", "format": "csv", "rows": 3,
            "columns": 2, "schema": {"columns": []}, "sha256": _SHA256, "size_bytes": 10,
            "object_key": "datasets/ds_1/table", "warnings": ["odd"], "created_at": _NOW,
        }
    ],
    "models": [
        {
            "id": f"mdl_{n}", "workspace": "default", "name": "model", "dataset_id": "ds_1",
            "status": status, "job_id": f"job_{n}", "training": {"seed": n}, "created_at": _NOW,
        }
        for n, status in ((1, "ready"), (2, "training"))
    ],
    "jobs": [
        {
            "id": f"job_{n}", "workspace": "default", "kind": kind, "spec": {"rows": 5},
            "model_id": model_id, "result_id": result_id, "status": status, "attempt": 1,
            "attempts_since_checkpoint": 1, "sends": 0, "cancel_requested": False,
            "progress": {"fraction": 0.5}, "version": 4, "created_at": _NOW, "next_dispatch_at": 0,
        }
        for n, kind, model_id, result_id, status in (
            (1, "train", "mdl_1", None, "succeeded"),
            (2, "train", "mdl_2", None, "queued"),
            (3, "sample", "mdl_1", "smp_3", "succeeded"),
            (4, "score", "mdl_1", "scr_4", "queued"),
        )
    ],
    "results": [
        {
            "id": "smp_3", "workspace": "default", "kind": "sample", "model_id": "mdl_1",
            "job_id": "job_3", "object_key": "results/smp_3/attempts/1/rows.csv",
            "sha256": _SHA256, "size_bytes": 7, "media_type": "text/csv", "rows": 5,
            "summary": {"seed": 1}, "created_at": _NOW,
        }
    ],
}  # fmt: skip


def _fill(database_url: str) -> None:
    """Rows as the first release wrote them."""
    database = Database(database_url)
    with database.writing() as session:
        for table, rows in _ROWS.items():
            for row in rows:
                plain = {
                    name: json.dumps(value) if isinstance(value, (dict, list)) else value
                    for name, value in row.items()
                }
                names = ", ".join(f'"{name}"' for name in plain)
                places = ", ".join(f":{name}" for name in plain)
                session.execute(text(f"INSERT INTO {table} ({names}) VALUES ({places})"), plain)
    database.close()


def _columns(database_url: str, table: str) -> list[dict[str, Any]]:
    database = Database(database_url)
    with database.reading() as session:
        found = session.execute(text(f"SELECT * FROM {table} ORDER BY id")).mappings()
        rows = [dict(row) for row in found]
    database.close()
    return rows


def test_the_first_release_s_records_are_all_there_after_the_upgrade(database_url: str) -> None:
    upgrade(database_url, _FIRST)
    _fill(database_url)
    upgrade(database_url)
    catalog = Catalog(database_url)
    jobs = {job.id: job for job in catalog.workspace("default").jobs.list().items}
    assert len(jobs) == 4
    assert {job.id for job in jobs.values() if job.queue is Queue.TRAIN} == {"job_1", "job_2"}
    assert {(job.priority, job.smaller_batch, job.estimate) for job in jobs.values()} == {
        (0, False, None)
    }
    assert catalog.workspace("default").results.get("smp_3").rows == 5
    assert catalog.workspace("default").datasets.get("ds_1").warnings == ["odd"]
    catalog.close()


def test_records_forget_what_they_kept_of_dropped_columns(database_url: str) -> None:
    upgrade(database_url, _FIRST)
    _fill(database_url)
    note = {"name": "no'te", "kind": "categorical", "levels": ["secret note 7"], "drop": True}
    kept = {"name": "kept", "kind": "categorical", "levels": ["not secret"]}
    answer = {"status": 201, "body": {"id": "ds_1", "schema": {"columns": [note]}}}
    changes = {
        "UPDATE datasets SET schema = :it": {"version": 1, "columns": [note, kept]},
        "UPDATE models SET schema = :it WHERE id = 'mdl_1'": {"columns": [kept, note]},
        "UPDATE datasets SET warnings = :it": [
            "column \"no'te\": has 9 levels, secret note 7", "column 'kept': has not secret",
        ],
        "INSERT INTO idempotency_keys VALUES ('default', 'k', 'd', :it, 1.0)": answer,
        "INSERT INTO idempotency_keys VALUES ('default', 'l', 'd', :it, 1.0)": {"status": 202},
    }  # fmt: skip
    database = Database(database_url)
    with database.writing() as session:
        for statement, value in changes.items():
            session.execute(text(statement), {"it": json.dumps(value)})
    database.close()
    upgrade(database_url)
    catalog = Catalog(database_url)
    bare = {"name": "no'te", "drop": True}
    dataset = catalog.workspace("default").datasets.get("ds_1")
    assert dataset.schema == {"version": 1, "columns": [bare, kept]}
    assert dataset.given_schema == dataset.schema
    assert dataset.warnings == ["column 'kept': has not secret"]
    assert catalog.workspace("default").models.get("mdl_1").schema == {"columns": [kept, bare]}
    assert catalog.workspace("default").models.get("mdl_2").schema is None
    assert catalog.workspace("default").idempotency.begin("k", "d") == Made("ds_1")
    assert catalog.workspace("default").idempotency.begin("l", "d") == {"status": 202}
    catalog.close()


def test_jobs_that_waited_during_the_upgrade_are_done_after_it(database_url: str) -> None:
    upgrade(database_url, _FIRST)
    _fill(database_url)
    upgrade(database_url)
    catalog = Catalog(database_url)
    assert {job.id for job in catalog.leases.take_due()} == {"job_2", "job_4"}
    claim = catalog.leases.claim_next([Queue.COMPUTE], "worker", 10)
    assert claim is not None
    assert (claim.job_id, claim.job.kind, claim.job.status) == (
        "job_4", JobKind.SCORE, JobStatus.RUNNING,
    )  # fmt: skip
    catalog.close()


def test_down_and_up_again_keeps_the_records(database_url: str) -> None:
    upgrade(database_url, _FIRST)
    _fill(database_url)
    before = {table: _columns(database_url, table) for table in _ROWS}
    upgrade(database_url)
    downgrade(database_url, _FIRST)
    assert {table: _columns(database_url, table) for table in _ROWS} == before
    upgrade(database_url)
    catalog = Catalog(database_url)
    assert len(catalog.workspace("default").jobs.list().items) == 4
    catalog.close()


def test_an_earlier_version_finds_no_shards_and_no_manifests(database_url: str) -> None:
    upgrade(database_url, _FIRST)
    _fill(database_url)
    upgrade(database_url)
    catalog = Catalog(database_url)
    rows = [range(0, 4096), range(4096, 5000)]
    job = catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id="mdl_1", spec={}, shards=rows
    )
    for _ in range(3):
        claim = catalog.leases.claim_next([Queue.COMPUTE], "worker", 10)
        while claim is not None and claim.job.kind is not JobKind.SAMPLE:
            claim = catalog.leases.claim_next([Queue.COMPUTE], "worker", 10)
        assert claim is not None
        catalog.leases.finish(claim, Produced("k", _SHA256, 1, "text/csv", 1, {}, _SHA256))
    assert catalog.workspace("default").jobs.get(job.id).status is JobStatus.SUCCEEDED
    catalog.close()
    downgrade(database_url, _FIRST)
    for table in ("jobs", "results"):
        left = {row["id"] for row in _columns(database_url, table)}
        assert left == {row["id"] for row in _ROWS[table]}


def test_an_earlier_version_finds_no_job_of_a_kind_that_it_does_not_know(database_url: str) -> None:
    upgrade(database_url, _FIRST)
    _fill(database_url)
    upgrade(database_url)
    catalog = Catalog(database_url)
    spec = ReportSpec("ds_1", seed=0).to_json()
    for finish in (True, False):
        job = catalog.workspace("default").jobs.enqueue(
            JobKind.REPORT, model_id="mdl_1", spec=spec, dataset_id="ds_1"
        )
        if finish:
            claim = claim_job(catalog, job.id, "worker", 10)
            assert claim is not None
            made = Produced("k", _SHA256, 1, "application/json", 1)
            catalog.leases.finish(claim, made)
    catalog.close()
    downgrade(database_url, "0008")
    for table in ("jobs", "results"):
        left = {row["id"] for row in _columns(database_url, table)}
        assert left == {row["id"] for row in _ROWS[table]}
    upgrade(database_url)
    catalog = Catalog(database_url)
    assert (
        catalog.workspace("default")
        .jobs.enqueue(JobKind.REPORT, model_id="mdl_1", spec=spec)
        .status
        == "queued"
    )
    catalog.close()


def test_down_to_nothing_leaves_no_table(database_url: str) -> None:
    upgrade(database_url)
    downgrade(database_url, "base")
    database = Database(database_url)
    with database.engine.connect() as connection:
        names = connection.dialect.get_table_names(connection)
    database.close()
    assert set(names) <= {"alembic_version"}
