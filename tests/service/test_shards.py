"""Samples in shards: one job, one table, whoever made which part of it; and ranges of its bytes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import httpx
import pytest

from catalog import JobStatus
from gcvae import Synthesizer
from gcvae.files.table_stream import stream_table
from service.routes.results import cut_rows
from tests.lengths import first_of
from tests.running_service import Running, assert_problem, attempt, work

ROWS = 9000


def asked(service: Running, model: dict[str, Any], **body: Any) -> dict[str, Any]:
    """A sample of two shards, queued."""
    path = f"/v1/models/{model['id']}/samples"
    response = service.http.post(path, json={"rows": ROWS, "seed": 4, **body})
    assert response.status_code == 202
    return dict(response.json())


def done(service: Running, model: dict[str, Any], **body: Any) -> dict[str, Any]:
    """A sample of two shards, done."""
    result = asked(service, model, **body)
    work(service, result["job_id"])
    return dict(service.http.get(f"/v1/samples/{result['id']}").json())


@pytest.fixture(scope="module")
def table(service: Running, model: dict[str, Any]) -> dict[str, Any]:
    """A CSV table that was drawn in two shards."""
    return done(service, model)


@pytest.fixture(scope="module")
def whole(service: Running, model: dict[str, Any], table: dict[str, Any]) -> bytes:
    """Its bytes."""
    return service.http.get(table["content"]).content


def drawn(service: Running, model: dict[str, Any], form: str) -> bytes:
    artifact = service.http.get(f"/v1/models/{model['id']}/artifact").content
    synthesizer = Synthesizer.from_bytes(artifact)
    blocks = synthesizer.sample_blocks(ROWS, seed=4)
    return b"".join(stream_table(blocks, synthesizer.schema, form))


def test_rows_are_cut_at_whole_blocks() -> None:
    assert cut_rows(100_000, 1) == [range(n, min(n + 4096, 100_000)) for n in range(0, 10**5, 4096)]
    assert cut_rows(4096, 4096) == []


def test_the_table_is_the_one_that_one_worker_draws(
    service: Running, model: dict[str, Any], table: dict[str, Any], whole: bytes
) -> None:
    assert whole == drawn(service, model, "csv")
    assert (table["rows"], table["size_bytes"]) == (ROWS, len(whole))
    assert table["sha256"] == hashlib.sha256(whole).hexdigest()
    assert service.http.get(table["content"]).headers["ETag"] == f'"{table["sha256"]}"'


def test_its_parts_and_their_manifest_lie_in_the_store(
    service: Running, table: dict[str, Any], whole: bytes
) -> None:
    result = service.catalog.workspace("default").results.get(table["id"])
    assert result.manifest_sha256 is not None
    manifest = json.loads(service.store.read(result.object_key, result.manifest_sha256))
    parts = [service.store.read(part["key"], part["sha256"]) for part in manifest["parts"]]
    assert len(parts) == 2
    assert b"".join(parts) == whole


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_every_form_is_one_file(service: Running, model: dict[str, Any], form: str) -> None:
    result = done(service, model, format=form)
    assert service.http.get(result["content"]).content == drawn(service, model, form)
    kept = [e.key for e in service.store.list(f"results/{result['id']}/")]
    assert len(kept) == (1 if form == "parquet" else 3)


@pytest.mark.parametrize(
    ("asked_for", "cut"),
    [
        ("bytes=0-0", slice(0, 1)),
        ("bytes=100-199", slice(100, 200)),
        ("bytes=5000-", slice(5000, None)),
        ("bytes=-7", slice(-7, None)),
        ("bytes=10-99999999", slice(10, None)),
    ],
)
def test_a_range_is_that_of_the_whole(
    service: Running, table: dict[str, Any], whole: bytes, asked_for: str, cut: slice
) -> None:
    response = service.http.get(table["content"], headers={"Range": asked_for})
    assert (response.status_code, response.content) == (206, whole[cut])
    first, last, _ = cut.indices(len(whole))
    assert response.headers["Content-Range"] == f"bytes {first}-{last - 1}/{len(whole)}"
    assert response.headers["Accept-Ranges"] == "bytes"


def test_a_transfer_that_broke_off_goes_on_where_it_stopped(
    service: Running, table: dict[str, Any], whole: bytes
) -> None:
    tag = service.http.get(table["content"]).headers["ETag"]
    half = len(whole) // 2
    same = {"Range": f"bytes={half}-", "If-Range": tag}
    assert whole[:half] + service.http.get(table["content"], headers=same).content == whole
    other = {"Range": f"bytes={half}-", "If-Range": '"other bytes"'}
    response = service.http.get(table["content"], headers=other)
    assert (response.status_code, response.content) == (200, whole)


@pytest.mark.parametrize("asked_for", ["bytes=1-2,4-5", "rows=1-2", "bytes=-", "bytes=9-3", "x"])
def test_what_is_no_range_is_answered_by_the_whole(
    service: Running, table: dict[str, Any], whole: bytes, asked_for: str
) -> None:
    response = service.http.get(table["content"], headers={"Range": asked_for})
    assert (response.status_code, response.content) == (200, whole)


def test_a_range_behind_the_end_says_how_long_the_table_is(
    service: Running, table: dict[str, Any], whole: bytes
) -> None:
    headers = {"Range": f"bytes={len(whole)}-"}
    response = service.http.get(table["content"], headers=headers)
    assert response.status_code == 416
    assert response.headers["Content-Range"] == f"bytes */{len(whole)}"
    assert response.headers["Content-Type"] == "application/problem+json"


def test_ranges_are_given_of_artifacts_too(service: Running, model: dict[str, Any]) -> None:
    path = f"/v1/models/{model['id']}/artifact"
    content = service.http.get(path).content
    part = service.http.get(path, headers={"Range": "bytes=8-15"})
    assert (part.status_code, part.content) == (206, content[8:16])


def test_one_job_is_listed_and_cancelled_whole(service: Running, model: dict[str, Any]) -> None:
    result = asked(service, model)
    jobs = service.http.get("/v1/jobs", params={"status": "queued", "kind": "sample"}).json()
    assert [job["id"] for job in jobs["items"]] == [result["job_id"]]
    cancelled = service.http.post(f"/v1/jobs/{result['job_id']}/cancel").json()
    assert cancelled["status"] == "cancelled"
    shards = service.catalog.all_jobs.shards(result["job_id"])
    assert {shard.status for shard in shards} == {JobStatus.CANCELLED}
    assert_problem(service.http.post(f"/v1/jobs/{shards[0].id}/cancel"), 404, "not-found")


def test_deleting_the_table_deletes_its_parts(service: Running, model: dict[str, Any]) -> None:
    before = service.traces()["store"]
    result = done(service, model)
    assert service.http.delete(f"/v1/samples/{result['id']}").status_code == 204
    assert service.traces()["store"] == before


def test_a_damaged_part_never_passes_for_the_table(service: Running, model: dict[str, Any]) -> None:
    result = done(service, model)
    folder = service.settings.home_dir / "store" / "results" / result["id"] / "shards" / "0"
    [file] = folder.rglob("rows.csv")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(httpx.RemoteProtocolError):
        service.http.get(result["content"])


def test_a_part_that_is_lost_before_the_end_is_drawn_again_alone(
    service: Running, model: dict[str, Any], whole: bytes
) -> None:
    result = asked(service, model)
    first, second = service.catalog.all_jobs.shards(result["job_id"])
    attempt(service, first.id)
    attempt(service, second.id)
    part = service.catalog.all_jobs.shards(result["job_id"])[1].part
    assert part is not None
    service.store.delete(part["object_key"])
    attempt(service, result["job_id"])  # finds the loss
    assert service.http.get(f"/v1/jobs/{result['job_id']}").json()["status"] == "running"
    attempt(service, second.id)
    attempt(service, result["job_id"])
    attempts = [shard.attempt for shard in service.catalog.all_jobs.shards(result["job_id"])]
    assert attempts == [1, 2]
    done = service.http.get(f"/v1/samples/{result['id']}").json()
    assert service.http.get(done["content"]).content == whole


@pytest.mark.parametrize("form", first_of("csv", "json"))
def test_scores_in_shards_are_those_of_one_worker(
    start: Any, service: Running, model: dict[str, Any], cars: bytes, form: str
) -> None:
    header, *lines = cars.splitlines(keepends=True)
    table = header + b"".join(lines[n % len(lines)] for n in range(4200))
    contents = []
    for shard_rows in (4096, 8192):
        other = start(score_shard_rows=shard_rows, home_dir=service.settings.home_dir)
        path = f"/v1/models/{model['id']}/scores?draws=2&format={form}&priority={shard_rows % 7}"
        headers = {"Content-Type": "text/csv"}
        result = other.http.post(path, content=table, headers=headers).json()
        work(other, result["job_id"])
        done = other.http.get(f"/v1/scores/{result['id']}").json()
        assert done["rows"] == 4200, other.http.get(f"/v1/jobs/{result['job_id']}").json()
        contents.append(other.http.get(done["content"]).content)
        assert other.http.get(f"/v1/jobs/{result['job_id']}").json()["estimate"]["seconds"] > 0
    assert contents[0] == contents[1]


def test_a_table_is_completed_in_shards_of_rows_times_draws(
    start: Any, service: Running, model: dict[str, Any], cars: bytes
) -> None:
    header, *lines = cars.splitlines(keepends=True)
    table = header + b"".join(lines[n % len(lines)] for n in range(4200))
    other = start(score_shard_rows=8192, home_dir=service.settings.home_dir)
    csv = {"Content-Type": "text/csv"}
    path = f"/v1/models/{model['id']}/imputations"
    results = [
        other.http.post(path, content=table, headers=csv, params={"draws": draws}).json()
        for draws in (1, 2)
    ]
    shards = [other.catalog.all_jobs.shards(result["job_id"]) for result in results]
    spans = [(shard.spec["first_row"], shard.spec["end_row"]) for shard in shards[1]]
    assert (len(shards[0]), spans) == (0, [(0, 4096), (4096, 4200)])
    for result in results:
        other.http.post(f"/v1/jobs/{result['job_id']}/cancel").raise_for_status()
