"""Samples: the table itself, or a job and then the table; the same bytes either way."""

from __future__ import annotations

import asyncio
import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from gcvae.files.table_stream import MEDIA_TYPES
from service.http.negotiation import TABLE_MEDIA_TYPES
from tests.running_service import Running, assert_problem, train, work
from tests.service.works import wait_for


def read(content: bytes, form: str) -> pd.DataFrame:
    buffer = io.BytesIO(content)
    if form == "csv":
        return pd.read_csv(buffer)
    if form == "parquet":
        return pd.read_parquet(buffer)
    return pd.read_json(buffer, lines=form == "jsonl")


def test_the_forms_are_those_of_the_library() -> None:
    assert TABLE_MEDIA_TYPES == MEDIA_TYPES


@pytest.mark.parametrize("form", MEDIA_TYPES)
def test_the_answer_is_the_table(service: Running, model: dict[str, Any], form: str) -> None:
    path = f"/v1/models/{model['id']}/samples"
    response = service.http.post(path, json={"rows": 4500, "seed": 5, "format": form})
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith(MEDIA_TYPES[form])
    assert f"cars-synthetic.{form}" in response.headers["Content-Disposition"]
    table = read(response.content, form)
    assert list(table.columns) == ["mpg", "cylinders", "fuel", "sold"]
    assert len(table) == 4500
    assert set(table["cylinders"]) <= {4, 6, 8}


def test_a_sample_is_spelled_like_the_table_it_was_learned_from(
    service: Running, model: dict[str, Any]
) -> None:
    path = f"/v1/models/{model['id']}/samples"
    header, *lines = service.http.post(path, json={"rows": 200}).text.splitlines()
    assert header == "mpg,cylinders,fuel,sold"
    cells = [line.split(",") for line in lines]
    assert {row[2] for row in cells} <= {"petrol", "diesel", "?"}
    assert {row[3] for row in cells} <= {"yes", "no"}
    assert all(len(row[0].split(".")[1]) == 1 for row in cells)


def test_without_a_seed_a_fresh_one_is_drawn_and_reported(
    service: Running, model: dict[str, Any]
) -> None:
    path = f"/v1/models/{model['id']}/samples"
    one, other = (service.http.post(path, json={"rows": 50}) for _ in range(2))
    assert one.content != other.content
    seed = int(one.headers["Gcvae-Seed"])
    assert service.http.post(path, json={"rows": 50, "seed": seed}).content == one.content


def test_a_sample_sent_again_with_its_key_has_the_same_rows(
    service: Running, model: dict[str, Any]
) -> None:
    path, headers = f"/v1/models/{model['id']}/samples", {"Idempotency-Key": "the same"}
    one, again = (service.http.post(path, json={"rows": 50}, headers=headers) for _ in range(2))
    assert one.content == again.content
    assert one.headers["Gcvae-Seed"] == again.headers["Gcvae-Seed"]
    more = service.http.post(path, json={"rows": 51})
    assert not more.content.startswith(one.content)


def test_the_shards_of_a_long_sample_without_a_seed_draw_with_one_that_the_record_names(
    service: Running, model: dict[str, Any]
) -> None:
    path, headers = f"/v1/models/{model['id']}/samples", {"Idempotency-Key": "long"}
    response, again = (
        service.http.post(path, json={"rows": 9000}, headers=headers) for _ in range(2)
    )
    assert again.json() == response.json()
    result = response.json()
    seed = result["request"]["seed"]
    assert response.headers["Gcvae-Seed"] == again.headers["Gcvae-Seed"] == str(seed)
    work(service, result["job_id"])
    done = service.http.get(f"/v1/samples/{result['id']}").json()
    assert done["summary"]["seed"] == seed
    inline = service.http.post(path, json={"rows": 5000, "seed": seed})
    assert service.http.get(done["content"]).text.startswith(inline.text)


def test_identifiers_look_like_the_tables_and_a_form_that_runs_out_is_said(
    service: Running, cars: bytes
) -> None:
    header, *lines = cars.splitlines()
    keyed = [header + ",Аккаунт".encode()]
    keyed += [line + b",A-%02d" % i for i, line in enumerate(lines[:80])]
    model = train(service, b"\n".join(keyed))
    path = f"/v1/models/{model['id']}/samples"
    few = service.http.post(path, json={"rows": 10, "seed": 1})
    assert "Gcvae-Notes" not in few.headers
    inline = service.http.post(path, json={"rows": 500, "seed": 1})
    [note] = json.loads(inline.headers["Gcvae-Notes"])
    assert note.startswith("column 'Аккаунт': the table's identifiers leave room for")
    keys = read(inline.content, "csv")["Аккаунт"]
    assert keys.is_unique
    assert keys.str.fullmatch(r"A-\d{2,3}").all()
    assert not set(keys) & {f"A-{i:02d}" for i in range(80)}
    result = service.http.post(path, json={"rows": 9000, "seed": 1}).json()
    work(service, result["job_id"])
    done = service.http.get(f"/v1/samples/{result['id']}").json()
    assert len(done["summary"]["notes"]) == 1
    long = read(service.http.get(done["content"]).content, "csv")["Аккаунт"]
    assert long.is_unique
    assert long.head(500).tolist() == keys.tolist()


def test_a_long_sample_is_a_job_whose_table_is_what_the_inline_answer_would_be(
    service: Running, model: dict[str, Any]
) -> None:
    path = f"/v1/models/{model['id']}/samples"
    response = service.http.post(path, json={"rows": 5001, "seed": 4})
    result = response.json()
    assert response.status_code == 202
    assert response.headers["Location"] == f"/v1/jobs/{result['job_id']}"
    assert (result["status"], result["content"]) == ("queued", None)
    where = f"/v1/samples/{result['id']}"
    assert service.http.get(where).json() == result
    assert_problem(service.http.get(f"{where}/content"), 409, "conflict")
    assert_problem(service.http.delete(where), 409, "conflict")
    assert_problem(service.http.get(f"/v1/scores/{result['id']}"), 404, "not-found")
    work(service, result["job_id"])
    done = service.http.get(where).json()
    assert (done["status"], done["rows"]) == ("succeeded", 5001)
    table = service.http.get(done["content"])
    assert table.headers["Content-Type"].startswith("text/csv")
    inline = service.http.post(path, json={"rows": 5000, "seed": 4}).text
    assert table.text.startswith(inline)
    again = {"If-None-Match": table.headers["ETag"]}
    assert service.http.get(done["content"], headers=again).status_code == 304
    assert service.http.delete(where).status_code == 204
    assert_problem(service.http.get(where), 404, "not-found")
    assert_problem(service.http.get(done["content"]), 404, "not-found")


@pytest.mark.parametrize(
    ("body", "status", "name", "pointer"),
    [
        ({}, 422, "invalid-request", "/rows"),
        ({"rows": 0}, 422, "invalid-request", "/rows"),
        ({"rows": 1e3, "seed": 1.5}, 422, "invalid-request", "/seed"),
        ({"rows": True}, 422, "invalid-request", "/rows"),
        ({"rows": "5"}, 422, "invalid-request", "/rows"),
        ({"rows": 5, "seed": "1"}, 422, "invalid-request", "/seed"),
        ({"rows": 5, "seed": 2**63}, 422, "invalid-request", "/seed"),
        ({"rows": 5, "format": "xls"}, 422, "invalid-request", "/format"),
        ({"rows": 5, "row": 5}, 422, "invalid-request", "/row"),
        ({"rows": 5, "given": ["diesel"]}, 422, "invalid-request", "/given"),
        ({"rows": 5, "distribution": {"fuel": 1}}, 422, "invalid-request", "/distribution/fuel"),
        ({"rows": 10**9}, 422, "limit-exceeded", "/rows"),
    ],
)  # fmt: skip
def test_what_can_not_be_drawn_is_refused_by_its_pointer(
    service: Running,
    model: dict[str, Any],
    body: dict[str, Any],
    status: int,
    name: str,
    pointer: str,
) -> None:
    before = service.traces()
    path = f"/v1/models/{model['id']}/samples"
    problem = assert_problem(service.http.post(path, json=body), status, name)
    assert problem["errors"][0]["pointer"] == pointer
    assert "Value error" not in problem["detail"]
    assert service.traces() == before


def test_a_damaged_artifact_draws_nothing(service: Running, model: dict[str, Any]) -> None:
    (file,) = (service.settings.home_dir / "store" / "models" / model["id"]).rglob("*.gcvae")
    content = file.read_bytes()
    service.loop.call_soon_threadsafe(service.resources.inline.forget, model["id"])
    file.write_bytes(content[:-1] + b"x")
    try:
        response = service.http.post(f"/v1/models/{model['id']}/samples", json={"rows": 5})
        assert_problem(response, 500, "stored-bytes-damaged")
        with pytest.raises(httpx.RemoteProtocolError):  # the last bytes never leave
            service.http.get(f"/v1/models/{model['id']}/artifact")
    finally:
        file.write_bytes(content)


def test_a_service_with_its_hands_full_says_when_to_come_back(
    service: Running, model: dict[str, Any], tmp_path: Path
) -> None:
    inline, linger = service.resources.inline, partial(wait_for, path=tmp_path / "go-on")
    n_places = service.settings.inline_workers + service.settings.inline_waiting
    tasks = [
        asyncio.run_coroutine_threadsafe(inline.run(linger), service.loop) for _ in range(n_places)
    ]
    response = service.http.post(f"/v1/models/{model['id']}/samples", json={"rows": 5})
    (tmp_path / "go-on").touch()
    assert [task.result(20) for task in tasks] == [tmp_path / "go-on"] * n_places
    problem = assert_problem(response, 429, "busy")
    assert problem["setting"] == "GCVAE_INLINE_WAITING"
    assert int(response.headers["Retry-After"]) >= 1


def test_rows_in_json_have_plain_values(service: Running, model: dict[str, Any]) -> None:
    path = f"/v1/models/{model['id']}/samples"
    rows = json.loads(service.http.post(path, json={"rows": 100, "format": "json"}).content)
    assert {type(row["sold"]) for row in rows} == {bool}
    assert {row["fuel"] for row in rows} <= {"petrol", "diesel", None}
