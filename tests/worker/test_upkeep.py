"""Upkeep: every record has its bytes, all bytes have their record; what has none is collected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from catalog import Catalog, JobKind, Produced, Queue, Trained, upgrade
from catalog.job_kinds import ScoreSpec
from catalog.object_keys import input_prefix, output_prefix
from gcvae_cli.app import app
from models_store import Published, Store, open_store
from models_store.manifests import Manifest
from worker.upkeep import collect, verify


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    upgrade(f"sqlite:///{tmp_path}/catalog.sqlite")
    catalog = Catalog(f"sqlite:///{tmp_path}/catalog.sqlite")
    yield catalog
    catalog.close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}/store")


@pytest.fixture
def model_id(catalog: Catalog, store: Store) -> str:
    """A ready model."""
    model_id = catalog.workspace("default").models.new_id()
    catalog.orphans.reserve(f"models/{model_id}/", 60)
    published = store.publish(f"models/{model_id}/m.gcvae", b"weights")
    trained = Trained(published.key, published.sha256, published.size_bytes, {"columns": []}, {})
    catalog.workspace("default").models.add_ready(
        model_id=model_id, name="m", trained=trained, training={}
    )
    return model_id


def _sampled(catalog: Catalog, store: Store, model_id: str) -> list[Published]:
    """The parts of a table that a job made in two shards, and their manifest."""
    job = catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=model_id, spec={}, shards=[range(0, 4096), range(4096, 5000)]
    )
    parts = []
    for number in range(3):
        claim = catalog.leases.claim_next([Queue.COMPUTE], "worker", 10)
        assert claim is not None
        prefix = output_prefix(claim.job, 1)
        if number < 2:
            parts.append(store.publish(f"{prefix}rows.csv", b"%d\n" % number))
            produced = Produced(**_produced(parts[-1]))
        else:
            whole = Manifest.of_shards(store, parts)
            made = store.publish(f"{prefix}manifest.json", whole.to_bytes())
            produced = Produced(**_produced(made), manifest_sha256=made.sha256)
        catalog.leases.finish(claim, produced)
        assert verify(catalog, store, 0).orphans == []
    assert catalog.workspace("default").results.get(str(job.result_id)).rows == 5
    return [*parts, made]


def _produced(published: Published) -> dict[str, Any]:
    fields = asdict(published)
    return {"object_key": fields.pop("key"), **fields, "media_type": "text/csv", "rows": 5}


def _swept(catalog: Catalog, store: Store) -> None:
    for prefix in catalog.orphans.take_due():
        store.delete(prefix)
        catalog.orphans.forget(prefix)


def test_a_store_that_is_as_it_should_be_is_found_so(
    catalog: Catalog, store: Store, model_id: str
) -> None:
    _sampled(catalog, store, model_id)
    findings = verify(catalog, store, grace_seconds=0)
    assert findings.is_clean
    assert findings.checked == 4  # the model, two parts, the manifest
    assert collect(catalog, store, 0) == []


def test_bytes_that_are_lost_or_damaged_are_named_with_their_record(
    catalog: Catalog, store: Store, model_id: str, tmp_path: Path
) -> None:
    part, other, _ = _sampled(catalog, store, model_id)
    store.delete(f"models/{model_id}/m.gcvae")
    (tmp_path / "store" / other.key).write_bytes(b"2\n")
    findings = verify(catalog, store, grace_seconds=0)
    assert findings.missing == [{"record": model_id, "key": f"models/{model_id}/m.gcvae"}]
    assert [place["key"] for place in findings.damaged] == [other.key]
    store.delete(part.key)
    assert verify(catalog, store).missing[1]["key"] == part.key


def test_bytes_without_a_record_are_collected_once_they_are_old_enough(
    catalog: Catalog, store: Store, model_id: str
) -> None:
    orphan = store.publish("results/smp_gone/attempts/1/rows.csv", b"1\n").key
    assert verify(catalog, store, grace_seconds=3600).is_clean
    assert verify(catalog, store, grace_seconds=0).orphans == [orphan]
    assert collect(catalog, store, 0, dry_run=True) == [orphan]
    assert store.exists(orphan)
    assert collect(catalog, store, 3600) == []
    assert collect(catalog, store, 0) == [orphan]
    assert [entry.key for entry in store.list()] == [f"models/{model_id}/m.gcvae"]


def test_what_is_reserved_or_in_the_making_is_no_orphan(
    catalog: Catalog, store: Store, model_id: str
) -> None:
    catalog.orphans.reserve("datasets/ds_coming/", 60)
    store.publish("datasets/ds_coming/table", b"a\n1\n")
    catalog.workspace("default").jobs.enqueue(JobKind.SAMPLE, model_id=model_id, spec={})
    claim = catalog.leases.claim_next([Queue.COMPUTE], "worker", 10)
    assert claim is not None
    store.publish(f"{output_prefix(claim.job, 1)}rows.csv", b"1\n")
    assert verify(catalog, store, grace_seconds=0).is_clean


def test_a_table_that_came_with_a_job_is_kept_until_the_job_has_succeeded(
    catalog: Catalog, store: Store, model_id: str
) -> None:
    job_id = catalog.workspace("default").jobs.new_id()
    catalog.orphans.reserve(input_prefix(job_id), 60)
    table = store.publish(f"{input_prefix(job_id)}table", b"a\n1\n")
    spec = ScoreSpec(table.key, table.sha256, "csv", draws=1, seed=0, format="csv").to_json()
    catalog.workspace("default").jobs.enqueue(
        JobKind.SCORE, model_id=model_id, spec=spec, job_id=job_id
    )
    assert verify(catalog, store, grace_seconds=0).checked == 2
    catalog.workspace("default").jobs.request_cancel(job_id)
    _swept(catalog, store)
    assert collect(catalog, store, 0) == []  # it may be tried again


def test_the_commands_tell_and_collect(
    catalog: Catalog, store: Store, model_id: str, tmp_path: Path
) -> None:
    at = ["--data-dir", str(tmp_path), "--grace-seconds", "0"]
    clean = CliRunner().invoke(app, ["store", "verify", *at])
    assert (clean.exit_code, clean.stdout) == (0, "1 objects are intact\n")
    orphan = store.publish("models/mdl_gone/m.gcvae", b"x").key
    found = CliRunner().invoke(app, ["store", "verify", "--json", *at])
    assert found.exit_code == 1
    assert json.loads(found.stdout)["orphans"] == [orphan]
    told = CliRunner().invoke(app, ["store", "gc", "--dry-run", *at])
    assert told.stdout.splitlines() == [orphan, "1 objects would be deleted"]
    gone = CliRunner().invoke(app, ["store", "gc", "--json", *at])
    assert json.loads(gone.stdout) == {"deleted": [orphan], "orphans": [orphan]}
    assert CliRunner().invoke(app, ["store", "verify", *at]).exit_code == 0
