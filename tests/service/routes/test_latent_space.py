"""Encodings and manifolds: where rows lie, and what the decoder makes of the plane."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import read_table
from gcvae.latent.encoding_stream import stream_encodings
from tests.lengths import first_of
from tests.running_service import Running, assert_problem, library, train, work
from tests.wordings import same_wording

ROWS = [
    {"mpg": 20.1, "cylinders": 4, "fuel": "petrol", "sold": True},
    {"mpg": 22.5, "cylinders": 6, "fuel": None, "sold": False},
]
TEXT = b"mpg,cylinders,fuel,sold\n20.1,4,petrol,yes\n22.5,6,?,no\n"


def test_rows_are_encoded_alike_in_every_form_and_by_the_library(
    service: Running, model: dict[str, Any]
) -> None:
    path = f"/v1/models/{model['id']}/encodings"
    parquet = io.BytesIO()
    pd.read_csv(io.BytesIO(TEXT)).replace("?", None).to_parquet(parquet)
    kinds = {"text/csv": TEXT, "application/vnd.apache.parquet": parquet.getvalue()}
    answers = [
        service.http.post(path, json={"rows": ROWS}),
        service.http.post(path, files={"file": ("rows.csv", TEXT)}),
        *(
            service.http.post(path, content=content, headers={"Content-Type": kind})
            for kind, content in kinds.items()
        ),
    ]
    assert [answer.status_code for answer in answers] == [200] * 4, answers[-1].text
    first = answers[0].json()
    assert all(answer.json() == first for answer in answers)
    assert first["model_id"] == model["id"]
    assert "posterior" in first["meaning"]
    known = library(service, model).encode(read_table(TEXT)).to_numpy()
    found = [[*row["mean"], *row["standard_deviation"]] for row in first["encodings"]]
    np.testing.assert_array_equal(found, known)
    as_csv = service.http.post(path, json={"rows": ROWS}, headers={"Accept": "text/csv"})
    assert as_csv.text.splitlines()[0] == "mean_1,mean_2,standard_deviation_1,standard_deviation_2"
    np.testing.assert_allclose(pd.read_csv(io.StringIO(as_csv.text)).to_numpy(), known)


@pytest.mark.parametrize(("source", "form"), first_of(("parquet", "csv"), ("csv", "json")))
def test_many_rows_are_encoded_by_a_job_in_shards_as_they_are_in_one(
    start: Any, service: Running, model: dict[str, Any], cars: bytes, source: str, form: str
) -> None:
    header, *lines = cars.splitlines(keepends=True)
    table = header + b"".join(lines[n % len(lines)] for n in range(4200))
    if source == "parquet":
        file = io.BytesIO()
        pd.read_csv(io.BytesIO(table)).replace("?", None).to_parquet(file, row_group_size=1000)
        table = file.getvalue()
    kind = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}[source]
    other = start(score_shard_rows=4096, home_dir=service.settings.home_dir)
    path = f"/v1/models/{model['id']}/encodings?format={form}"
    result = other.http.post(path, content=table, headers={"Content-Type": kind}).json()
    job = other.http.get(f"/v1/jobs/{result['job_id']}").json()
    assert (job["kind"], len(other.catalog.all_jobs.shards(job["id"]))) == ("encode", 2)
    work(other, job["id"])
    done = other.http.get(f"/v1/encodings/{result['id']}").json()
    assert done["rows"] == 4200, other.http.get(f"/v1/jobs/{job['id']}").json()
    blocks = library(service, model).encode_blocks(read_table(table))
    heading = {"model_id": model["id"]}
    expected = b"".join(stream_encodings(blocks, form, heading))
    assert other.http.get(done["content"]).content == expected
    assert other.http.delete(f"/v1/encodings/{result['id']}").status_code == 204
    assert not list(other.store.list(f"results/{result['id']}"))


@pytest.mark.parametrize("rows", [100, 101])
def test_more_rows_than_the_inline_limit_become_a_job(
    service: Running, model: dict[str, Any], cars: bytes, rows: int
) -> None:
    table = cars + cars.splitlines(keepends=True)[1] * (rows - 100)
    headers = {"Content-Type": "text/csv", "Idempotency-Key": f"encode {rows}"}
    path = f"/v1/models/{model['id']}/encodings"
    answers = [service.http.post(path, content=table, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200 if rows == 100 else 202] * 2
    assert answers[0].json() == answers[1].json()
    if rows > 100:
        service.http.post(f"/v1/jobs/{answers[0].json()['job_id']}/cancel").raise_for_status()


@pytest.mark.parametrize(
    ("request_", "status", "name", "place"),
    [
        ({"json": {}}, 422, "invalid-request", "/rows"),
        ({"json": {"rows": [{"hp": 3}]}}, 422, "unknown-column", "/rows/0/hp"),
        ({"json": {"rows": [{"mpg": "fast"}]}}, 422, "invalid-table", "/rows/0/mpg"),
        ({"content": b"", "headers": {"Content-Type": "text/html"}}, 415,
         "unsupported-media-type", "text/html"),
    ],
)  # fmt: skip
def test_rows_that_can_not_be_encoded_are_refused(
    service: Running,
    model: dict[str, Any],
    request_: dict[str, Any],
    status: int,
    name: str,
    place: str,
) -> None:
    response = service.http.post(f"/v1/models/{model['id']}/encodings", **request_)
    assert place in assert_problem(response, status, name)["detail"]


def test_a_manifold_is_the_librarys_in_every_form(service: Running, model: dict[str, Any]) -> None:
    path = f"/v1/models/{model['id']}/manifold"
    known = library(service, model).manifold(4)
    found = service.http.get(path, params={"steps": 4})
    assert found.json() == known.to_json()
    picture = service.http.get(path, params={"steps": 4}, headers={"Accept": "image/png"})
    assert picture.content == known.picture("png")
    again = {"If-None-Match": found.headers["ETag"]}
    assert service.http.get(path, params={"steps": 4}, headers=again).status_code == 304


def test_a_manifold_of_more_dimensions_is_refused(service: Running, cars: bytes) -> None:
    model = train(service, cars, d_latent=3)
    response = service.http.get(f"/v1/models/{model['id']}/manifold")
    same_wording(assert_problem(response, 422, "invalid-input")["detail"])
