"""Databases: several tables in, keys found and corrected, a model of them, tables drawn."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

from gcvae import DatabaseSynthesizer
from gcvae.files.tables import read_table
from tests.linked_tables import FILES, KEYS, LINK, TRAINING, USERS, VISITS, unzipped, zipped
from tests.running_service import Running, assert_problem, train, work
from tests.wordings import same_wording

ZIP = {"Content-Type": "application/zip"}
OTHER_VISITS = (
    VISITS.replace("user_id", "user"),
    VISITS.replace("\n", ",1\n").replace("pages,1", "pages,page"),
)
"""Visits without the column of their key, and with a column that the model does not know."""
PATCH = {"Content-Type": "application/merge-patch+json"}


def upload(service: Running, content: bytes | None = None, **params: str) -> httpx.Response:
    packed = zipped() if content is None else content
    return service.http.post("/v1/datasets", content=packed, headers=ZIP, params=params)


def parquet(text: str) -> bytes:
    buffer = io.BytesIO()
    pd.read_csv(io.StringIO(text)).to_parquet(buffer)
    return buffer.getvalue()


def keys_hold(files: dict[str, bytes]) -> bool:
    users = pd.read_csv(io.BytesIO(files["users.csv"]), sep=";", decimal=",")
    visits = pd.read_csv(io.BytesIO(files["visits.csv"]))
    unique = users["id"].is_unique and visits["visit_id"].is_unique
    return bool(unique and visits["user_id"].isin(users["id"]).all())


@pytest.fixture(scope="module")
def dataset(service: Running) -> dict[str, Any]:
    return dict(upload(service, name="shop").json())


@pytest.fixture(scope="module")
def model(service: Running, dataset: dict[str, Any]) -> dict[str, Any]:
    asked = {"dataset_id": dataset["id"], "training": TRAINING}
    made = service.http.post("/v1/models", json=asked).json()
    assert (made["kind"], made["schema"], made["record"]) == ("database", KEYS, None)
    work(service, made["job_id"])
    return dict(service.http.get(f"/v1/models/{made['id']}").json())


@pytest.mark.parametrize("way", ["files", "form", "bare", "bytes", "folder", "kinds"])
def test_a_database_comes_in_by_every_way(service: Running, way: str) -> None:
    in_folder = {f"shop/{name}": text for name, text in FILES.items()}
    rubbish = {"shop/.DS_Store": b"x", "__MACOSX/shop/._users.csv": b"x"}
    kinds = {"users.csv.gz": gzip.compress(USERS.encode()), "visits.parquet": parquet(VISITS)}
    octets = {"Content-Type": "application/octet-stream"}
    requests: dict[str, dict[str, Any]] = {
        "files": {"files": [("file", file) for file in reversed(FILES.items())]},
        "form": {"files": {"file": ("shop.zip", zipped())}},
        "bare": {"content": zipped(), "headers": ZIP, "params": {"name": "shop"}},
        "bytes": {"content": zipped(), "headers": octets},
        "folder": {"content": zipped({**rubbish, **in_folder}), "headers": ZIP},
        "kinds": {"content": zipped(kinds), "headers": ZIP},
    }
    answer = service.http.post("/v1/datasets", **requests[way])
    dataset = answer.json()
    assert answer.status_code == 201, dataset
    assert dataset["name"] == ("shop" if way in ("form", "bare") else "database")
    assert (dataset["kind"], dataset["format"]) == ("database", "zip")
    assert (dataset["rows"], dataset["columns"]) == (240, 8)
    found = {table["name"]: table for table in dataset["tables"]}
    assert {name: (t["rows"], t["columns"]) for name, t in found.items()} == {
        "users": (60, 4),
        "visits": (180, 4),
    }
    kinds_of = {c["name"]: c["kind"] for c in found["users"]["schema"]["columns"]}
    assert kinds_of == {
        "id": "identifier", "plan": "categorical", "joined": "datetime", "spend": "continuous",
    }  # fmt: skip
    assert dataset["schema"] == KEYS
    assert dataset["given_schema"] == {"tables": {}}
    stored = service.store.read(f"datasets/{dataset['id']}/table.zip", dataset["sha256"])
    if way in ("files", "bare"):
        assert unzipped(stored) == {name: text.encode() for name, text in FILES.items()}
    assert service.http.get(answer.headers["Location"]).json() == dataset


def damaged(content: bytes) -> bytes:
    """The same ZIP file, a byte of its first file changed."""
    return content[:60] + bytes([content[60] ^ 1]) + content[61:]


def encrypted(content: bytes) -> bytes:
    """The same ZIP file, whose files are said to be encrypted."""
    changed = content.replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01")
    return changed.replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(zipped({}), id="empty"),
        pytest.param(zipped({"notes/": ""}), id="folder alone"),
        pytest.param(zipped({"../users.csv": USERS}), id="outside"),
        pytest.param(zipped({"/etc/users.csv": USERS}), id="absolute"),
        pytest.param(zipped({"C:\\users.csv": USERS}), id="drive"),
        pytest.param(zipped({"a/users.csv": USERS, "b/visits.csv": VISITS}), id="two folders"),
        pytest.param(zipped({"users.csv": USERS, "users.parquet": b"PAR1"}), id="same table"),
        pytest.param(zipped({"users.csv": USERS, "Users.csv": USERS}), id="same but for case"),
        pytest.param(zipped({"users.csv": USERS, "read.me": "x"}), id="other file"),
        pytest.param(zipped({"users.csv": USERS, "more.zip": zipped()}), id="nested"),
        pytest.param(zipped({"[Content_Types].xml": "", "xl/workbook.xml": ""}), id="workbook"),
        pytest.param(zipped()[:-30], id="cut off"),
        pytest.param(damaged(zipped()), id="damaged"),
        pytest.param(encrypted(zipped()), id="encrypted"),
        pytest.param(zipped({"users.csv": USERS, "visits.csv": "a,b\n1\n"}), id="ragged"),
        pytest.param(zipped({"users.csv": ""}), id="no cells"),
        pytest.param(zipped({"users.csv": USERS, "visits.parquet": "PAR1 x"}), id="parquet"),
    ],
)
def test_what_is_no_database_is_refused_by_its_file_and_leaves_no_trace(
    service: Running, content: bytes
) -> None:
    before = service.traces()
    problem = assert_problem(upload(service, content), 422, "invalid-table")
    same_wording(problem["detail"])
    assert all(error["message"] for error in problem["errors"])
    assert service.traces() == before


@pytest.mark.parametrize("names", [("users.csv", "users.parquet"), ("users.csv", "b.pdf")])
def test_files_of_a_form_are_refused_by_their_names(service: Running, names: Any) -> None:
    before = service.traces()
    files = [("file", (name, USERS)) for name in names]
    answer = service.http.post("/v1/datasets", files=files)
    same_wording(assert_problem(answer, 422, "invalid-table")["detail"])
    assert service.traces() == before


@pytest.mark.parametrize(
    ("limits", "status", "name"),
    [
        ({"max_tables": 1}, 422, "limit-exceeded"),
        ({"max_rows": 200}, 422, "limit-exceeded"),
        ({"max_columns": 3}, 422, "limit-exceeded"),
        ({"max_cells": 800}, 422, "limit-exceeded"),
        ({"max_levels": 1}, 422, "limit-exceeded"),
        ({"max_cell_characters": 5}, 422, "limit-exceeded"),
        ({"max_table_bytes": 4000}, 413, "too-large"),
        ({"max_upload_bytes": 500}, 413, "too-large"),
    ],
)
def test_the_limits_of_a_table_are_those_of_all_together(
    start: Callable[..., Running], limits: dict[str, int], status: int, name: str
) -> None:
    service = start(**limits)
    before = service.traces()
    problem = assert_problem(upload(service), status, name)
    same_wording(problem["detail"])
    assert problem["setting"] == f"GCVAE_{next(iter(limits)).upper()}"
    assert service.traces() == before


def test_a_form_has_no_more_files_than_a_database_tables(start: Callable[..., Running]) -> None:
    service = start(max_tables=2)
    files = [("file", (f"t{i}.csv", USERS)) for i in range(3)]
    problem = assert_problem(service.http.post("/v1/datasets", files=files), 422, "limit-exceeded")
    assert problem["setting"] == "GCVAE_MAX_TABLES"
    same_wording(problem["detail"])


def test_a_small_file_that_unfolds_without_end_is_refused(start: Callable[..., Running]) -> None:
    service = start(max_table_bytes=1_000_000)
    zeros = "a,b\n" + "0,0\n" * 5_000_000
    bombs = {"users.csv": zeros}, {"users.csv.gz": gzip.compress(zeros.encode())}
    for bomb in bombs:
        assert_problem(upload(service, zipped(bomb)), 413, "too-large")


UNORDERED = {name: v for name, v in KEYS["tables"]["visits"].items() if name != "order"}
INVALID_REFERENCES = VISITS + "".join(f"{900 + i},{7000 + i},2025-01-01,1\n" for i in range(12))


def test_dirty_references_are_refused_with_the_first_ten_or_dropped_or_emptied(
    service: Running,
) -> None:
    before = service.traces()
    content = zipped({"users.csv": USERS, "visits.csv": INVALID_REFERENCES})
    problem = assert_problem(upload(service, content), 422, "invalid-table")
    assert problem["errors"][0]["pointer"] == "/tables/visits/foreign_keys/0"
    assert "; ".join(str(7000 + i) for i in range(10)) in problem["detail"]
    assert "7010" not in problem["detail"]
    assert service.traces() == before
    for treatment, told in (("drop", "are removed"), ("null", "keys are set to missing")):
        dataset = upload(
            service, content, schema=json.dumps({"invalid_references": treatment})
        ).json()
        # Rows without a parent have no order among siblings.
        expected = (
            KEYS["tables"] if treatment == "drop" else KEYS["tables"] | {"visits": {**UNORDERED}}
        )
        assert dataset["schema"] == {"tables": expected, "invalid_references": treatment}
        [warning] = dataset["warnings"]
        assert warning.endswith(told)
        assert dataset["rows"] == 252
    answer = service.http.patch(
        f"/v1/datasets/{dataset['id']}/schema", json={"invalid_references": None}, headers=PATCH
    )
    assert_problem(answer, 422, "invalid-table")


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"table": {}}, "/table"),
        ({"invalid_references": "keep"}, "/invalid_references"),
        ({"tables": []}, "/tables"),
        ({"tables": {"user": {}}}, "/tables/user"),
        ({"tables": {"visits": {"keys": []}}}, "/tables/visits/keys"),
        ({"tables": {"visits": {"order": "start"}}}, "/tables/visits/order"),
        ({"tables": {"visits": {"primary_key": ["id"]}}}, "/tables/visits/primary_key/0"),
        ({"tables": {"visits": {"columns": [{"name": "pages", "kind": "datetime"}]}}},
         "/tables/visits/columns/0/kind"),
    ],
)  # fmt: skip
def test_a_schema_that_does_not_fit_is_refused_by_its_place(
    service: Running, dataset: dict[str, Any], schema: dict[str, Any], pointer: str
) -> None:
    before = service.traces()
    for answer in (
        upload(service, schema=json.dumps(schema)),
        service.http.put(f"/v1/datasets/{dataset['id']}/schema", json=schema),
    ):
        problem = assert_problem(answer, 422, "invalid-schema")
        assert problem["errors"][0]["pointer"] == pointer
        same_wording(problem["detail"])
    assert service.traces() == before


def test_a_key_that_is_not_unique_is_refused(service: Running, dataset: dict[str, Any]) -> None:
    schema = {"tables": {"visits": {"primary_key": ["pages"]}}}
    answer = service.http.put(f"/v1/datasets/{dataset['id']}/schema", json=schema)
    problem = assert_problem(answer, 422, "invalid-table")
    assert problem["errors"][0]["pointer"] == "/tables/visits/primary_key"


def test_keys_are_replaced_and_patched(service: Running) -> None:
    place = f"/v1/datasets/{upload(service).json()['id']}/schema"
    said = {"tables": {"visits": {"foreign_keys": [], "order": "pages"}}}
    put = service.http.put(place, json=said).json()
    assert put["schema"]["tables"]["visits"]["foreign_keys"] == []
    assert put["given_schema"] == said
    assert len(put["changes"]["summary"]) == 2
    columns = [{"name": "pages", "kind": "integer"}, {"name": "started", "drop": True}]
    patch = {"tables": {"visits": {"foreign_keys": None, "order": None, "columns": columns}}}
    patched = service.http.patch(place, json=patch, headers=PATCH).json()
    assert patched["schema"]["tables"]["visits"]["foreign_keys"] == [LINK]
    assert patched["given_schema"] == {"tables": {"visits": {"columns": columns}}}
    found = {c["name"]: c for c in patched["tables"][1]["schema"]["columns"]}
    assert (found["pages"]["kind"], found["started"]["drop"]) == ("integer", True)
    unchanged = service.http.patch(place, json={}, headers=PATCH).json()
    assert unchanged["changes"]["summary"] == ["nothing changed"]


def test_a_table_is_looked_at_by_its_name(service: Running, dataset: dict[str, Any]) -> None:
    place = f"/v1/datasets/{dataset['id']}"
    profile = service.http.get(f"{place}/profile?table=users").json()
    assert profile["rows"] == 60
    assert [column["name"] for column in profile["columns"]] == ["id", "plan", "joined", "spend"]
    assert profile["columns"][1]["levels"][0]["count"] == 30
    rows = service.http.get(f"{place}/rows?table=visits&limit=1").json()["rows"]
    assert rows == [["0", "100", "2025-01-01", "0"]]
    rules = service.http.get(f"{place}/rules?table=users").json()
    assert rules["dataset_id"] == dataset["id"]
    for path in ("profile", "rows", "rules"):
        for asked in ("", "?table=user"):
            answer = service.http.get(f"{place}/{path}{asked}")
            problem = assert_problem(answer, 422, "invalid-request")
            assert problem["errors"][0]["pointer"] == "?table"
    presets = service.http.get(f"{place}/presets").json()["presets"]
    assert all(preset["report_estimate"] is None for preset in presets)


def test_a_model_says_how_each_table_is_drawn(service: Running, model: dict[str, Any]) -> None:
    assert (model["status"], model["kind"]) == ("ready", "database")
    assert model["schema"] == KEYS
    plans = {name: table["plan"] for name, table in model["record"]["tables"].items()}
    assert plans == {
        "users": "by itself",
        "visits": "given its row of users, in the order of started",
    }
    assert model["record"]["rows"] == 240
    job = service.http.get(f"/v1/jobs/{model['job_id']}").json()
    assert (job["status"], job["progress"]["table"]) == ("succeeded", "visits")
    reports = service.http.get(f"/v1/jobs?kind=report&model_id={model['id']}").json()
    assert reports["items"] == []


def test_tables_are_drawn_by_scale_and_by_parents(service: Running, model: dict[str, Any]) -> None:
    place = f"/v1/models/{model['id']}/samples"
    answer = service.http.post(place, json={"scale": 2, "seed": 5})
    assert answer.headers["Content-Type"] == "application/zip"
    assert answer.headers["Gcvae-Seed"] == "5"
    files = unzipped(answer.content)
    assert files.keys() == FILES.keys()
    assert keys_hold(files)
    assert files["users.csv"].count(b"\n") == 121
    assert b".2024;" in files["users.csv"]  # as the table writes dates
    assert service.http.post(place, json={"scale": 2, "seed": 5}).content == answer.content
    one = service.http.post(f"{place}?table=visits", json={"scale": 2, "seed": 5})
    assert one.headers["Content-Type"].startswith("text/csv")
    assert one.content == files["visits.csv"]
    by_parents = unzipped(service.http.post(place, json={"parents": 7}).content)
    assert by_parents["users.csv"].count(b"\n") == 8
    drawn = unzipped(service.http.post(place, json={"format": "parquet"}).content)
    frame = pd.read_parquet(io.BytesIO(drawn["users.parquet"]))
    assert len(frame) == 60
    assert frame["spend"].dtype == "float64"
    assert frame["joined"].dtype.kind == "M"


def test_large_draws_are_jobs_whose_tables_are_downloaded_each(
    start: Callable[..., Running], service: Running, model: dict[str, Any]
) -> None:
    artifact = service.http.get(f"/v1/models/{model['id']}/artifact").content
    own = start(max_inline_sample_rows=100)
    headers = {"Content-Type": "application/octet-stream"}
    imported = own.http.post("/v1/models/import", content=artifact, headers=headers).json()
    assert (imported["kind"], imported["status"]) == ("database", "ready")
    asked = {"scale": 2, "seed": 5}
    queued = own.http.post(f"/v1/models/{imported['id']}/samples", json=asked)
    assert queued.status_code == 202
    work(own, queued.json()["job_id"])
    place = f"/v1/samples/{queued.json()['id']}"
    sample = own.http.get(place).json()
    assert (sample["media_type"], sample["request"]["scale"]) == ("application/zip", 2.0)
    files = unzipped(own.http.get(f"{place}/content").content)
    inline = service.http.post(f"/v1/models/{model['id']}/samples", json=asked)
    assert files == unzipped(inline.content)
    assert sample["rows"] == sum(content.count(b"\n") - 1 for content in files.values())
    for name, table in sample["summary"]["tables"].items():
        alone = own.http.get(f"{place}/content?table={name}")
        assert alone.content == files[f"{name}.csv"]
        assert alone.headers["ETag"] == f'"{table["sha256"]}"'
        part = own.http.get(f"{place}/content?table={name}", headers={"Range": "bytes=5-9"})
        assert (part.status_code, part.content) == (206, alone.content[5:10])
    answer = own.http.get(f"{place}/content?table=user")
    assert assert_problem(answer, 422, "invalid-request")["errors"][0]["suggestion"] == "users"
    one = own.http.post(f"/v1/models/{imported['id']}/samples?table=users", json=asked).json()
    work(own, one["job_id"])
    assert own.http.get(f"/v1/samples/{one['id']}/content").content == files["users.csv"]


@pytest.mark.parametrize(
    ("asked", "status", "name", "pointer"),
    [
        ({"rows": 10}, 422, "invalid-request", "/rows"),
        ({"scale": 1, "parents": 2}, 422, "invalid-request", "/parents"),
        ({"scale": 0}, 422, "invalid-request", "/scale"),
        ({"scale": "much"}, 422, "invalid-request", "/scale"),
        ({"parents": 0}, 422, "invalid-request", "/parents"),
        ({"scale": 900_000}, 422, "limit-exceeded", "/scale"),
        ({"given": {"plan": "free"}}, 422, "not-offered", "/given"),
        ({"given_rows": [{"plan": "free"}]}, 422, "not-offered", "/given_rows"),
        ({"distribution": {"plan": {"free": 1.0}}}, 422, "not-offered", "/distribution"),
        ({"format": "json"}, 422, "not-offered", "/format"),
    ],
)
def test_what_can_not_be_drawn_is_refused_by_its_place(
    service: Running,
    model: dict[str, Any],
    asked: dict[str, Any],
    status: int,
    name: str,
    pointer: str,
) -> None:
    answer = service.http.post(f"/v1/models/{model['id']}/samples", json=asked)
    problem = assert_problem(answer, status, name)
    assert problem["errors"][0]["pointer"] == pointer
    same_wording(problem["detail"])


def test_models_of_one_table_have_no_scale(service: Running) -> None:
    one = train(service, b"a,b\n" + b"1,x\n2,y\n" * 20)
    place = f"/v1/models/{one['id']}/samples"
    for query, body, pointer in (
        ("", {"scale": 2.0}, "/scale"),
        ("", {"parents": 2}, "/parents"),
        ("?table=users", {"rows": 2}, "?table"),
        ("", {}, "/rows"),
    ):
        answer = service.http.post(place + query, json=body)
        problem = assert_problem(answer, 422, "invalid-request")
        assert problem["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "imputations", {"rows": [{"id": 1}]}),
        ("POST", "imputations?draws=2", None),
        ("POST", "encodings", {"rows": [{"id": 1}]}),
        ("GET", "dependencies", None),
        ("POST", "dependencies", {"row": {"id": 1}}),
        ("GET", "manifold", None),
        ("POST", "scores", {"rows": [{"id": 1}]}),
        ("POST", "scores?tolerance=0.5", None),
        ("POST", "report", {"columns": ["plan"]}),
        ("GET", "dossier?purpose=tests", None),
        ("GET", "artifact?minimal=true", None),
        ("GET", "artifact?scoring=off", None),
        ("PATCH", "", {"scoring": "off"}),
    ],
)
def test_what_models_of_databases_can_not_do_yet_is_refused_with_what_they_can(
    service: Running, model: dict[str, Any], method: str, path: str, body: Any
) -> None:
    place = f"/v1/models/{model['id']}/{path}".rstrip("/")
    before = service.traces()
    problem = assert_problem(service.http.request(method, place, json=body), 422, "not-offered")
    assert problem["offered"]
    same_wording(problem["detail"])
    assert service.traces() == before


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"training": {"report_share": 0.1}}, "/training/report_share"),
        ({"training": {"differential_privacy": {"epsilon": 3}}},
         "/training/differential_privacy"),
        ({"scoring": "flag"}, "/scoring"),
    ],
)  # fmt: skip
def test_trainings_that_are_of_single_tables_are_refused(
    service: Running, dataset: dict[str, Any], more: dict[str, Any], pointer: str
) -> None:
    asked = {"dataset_id": dataset["id"], **more}
    problem = assert_problem(service.http.post("/v1/models", json=asked), 422, "not-offered")
    assert problem["errors"][0]["pointer"] == pointer


def test_the_artifact_is_the_librarys_and_what_is_no_model_of_a_database_is_refused(
    service: Running, model: dict[str, Any]
) -> None:
    artifact = service.http.get(f"/v1/models/{model['id']}/artifact").content
    drawn = DatabaseSynthesizer.from_bytes(artifact).sample(scale=2, seed=5)
    answer = service.http.post(f"/v1/models/{model['id']}/samples", json={"scale": 2, "seed": 5})
    files = unzipped(answer.content)
    assert drawn["visits"].to_csv(index=False).encode() == files["visits.csv"]
    before = service.traces()
    headers = {"Content-Type": "application/octet-stream"}
    for broken in (artifact[:-9], artifact[:-1] + bytes([artifact[-1] ^ 1])):
        answer = service.http.post("/v1/models/import", content=broken, headers=headers)
        assert_problem(answer, 422, "invalid-model")
    assert service.traces() == before


def test_a_training_fails_by_its_table_and_all_that_it_made_goes_with_its_dataset(
    service: Running,
) -> None:
    before = service.traces()
    rule = {"rule": "pages >= 0 or started > '2025-06-01'", "keep": "hard"}
    said = {"tables": {"visits": {"rules": [rule]}}}
    dataset = upload(service, schema=json.dumps(said)).json()
    asked = {"dataset_id": dataset["id"], "training": TRAINING}
    failing, waiting = (service.http.post("/v1/models", json=asked).json() for _ in range(2))
    work(service, failing["job_id"])
    job = service.http.get(f"/v1/jobs/{failing['job_id']}").json()
    assert (job["status"], job["error"]["code"]) == ("failed", "input"), job
    assert "table 'visits'" in job["error"]["message"]
    assert job["error"]["problems"][0]["pointer"].startswith("/tables/visits/rules/0")
    cancelled = service.http.post(f"/v1/jobs/{waiting['job_id']}/cancel").json()
    assert cancelled["status"] == "cancelled"
    assert service.http.delete(f"/v1/datasets/{dataset['id']}?cascade=true").status_code == 204
    kept = ("datasets", "models", "results", "store")
    assert {name: service.traces()[name] for name in kept} == {name: before[name] for name in kept}


def test_households_are_scored_by_a_job_as_the_library_scores_them(
    service: Running, model: dict[str, Any]
) -> None:
    place = f"/v1/models/{model['id']}/scores"
    queued = service.http.post(place, content=zipped(), headers=ZIP, params={"seed": "3"})
    assert queued.status_code == 202, queued.text
    work(service, queued.json()["job_id"])
    made = service.http.get(f"/v1/scores/{queued.json()['id']}").json()
    assert (made["rows"], made["summary"]["n_impossible"]) == (60, 0)
    found = service.http.get(f"/v1/scores/{made['id']}/content").json()
    assert found["options"] == {"draws": 8, "seed": 3}
    artifact = service.http.get(f"/v1/models/{model['id']}/artifact").content
    tables = {n.removesuffix(".csv"): read_table(t.encode()) for n, t in FILES.items()}
    [(table, scores)] = DatabaseSynthesizer.from_bytes(artifact).score(tables, seed=3).items()
    assert [line["table"] for line in found["scores"]] == [table] * 60
    for name in ("log_likelihood", "standard_error", "anomaly"):
        told = [line[name] for line in found["scores"]]
        np.testing.assert_allclose(np.array(told, dtype=float), scores[name].astype(float))
    assert [line["odd_cell"] for line in found["scores"]] == list(scores["odd_cell"])
    csv = service.http.post(
        place, files=[("file", file) for file in FILES.items()], params={"format": "csv"}
    ).json()
    work(service, csv["job_id"])
    text = service.http.get(f"/v1/scores/{csv['id']}/content").text
    assert text.startswith("table,row,log_likelihood,standard_error,anomaly,odd_table,odd_row,odd")
    assert text.count("\n") == 61


@pytest.mark.parametrize(
    ("content", "params", "name"),
    [
        (zipped({"users.csv": USERS}), {}, "invalid-table"),
        (zipped({**FILES, "more.csv": USERS}), {}, "invalid-table"),
        (USERS.encode(), {}, "invalid-table"),
        (zipped(), {"draws": "1000000"}, "limit-exceeded"),
        (zipped(), {"tolerance": "0.1"}, "not-offered"),
        (zipped({**FILES, "visits.csv": OTHER_VISITS[0]}), {}, "invalid-table"),
        (zipped({**FILES, "visits.csv": OTHER_VISITS[1]}), {}, "unknown-column"),
        (zipped(), {"foo": "1"}, "invalid-request"),
    ],
)
def test_what_can_not_be_scored_is_refused_and_leaves_no_trace(
    service: Running, model: dict[str, Any], content: bytes, params: dict[str, str], name: str
) -> None:
    before = service.traces()
    place = f"/v1/models/{model['id']}/scores"
    octets = {"Content-Type": "application/octet-stream"}
    answer = service.http.post(place, content=content, headers=octets, params=params)
    same_wording(assert_problem(answer, 422, name)["detail"])
    assert service.traces() == before


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_database_is_imputed_by_a_job_as_the_library_imputes_it(
    service: Running, model: dict[str, Any], form: str
) -> None:
    visits = pd.read_csv(io.StringIO(VISITS), dtype=str)
    name = visits.columns[-1]
    visits.loc[::3, name] = ""
    sent = {"users.csv": USERS, "visits.csv": visits.to_csv(index=False)}
    place = f"/v1/models/{model['id']}/imputations"
    queued = service.http.post(
        place, content=zipped(sent), headers=ZIP, params={"seed": "3", "format": form}
    )
    assert queued.status_code == 202, queued.text
    work(service, queued.json()["job_id"])
    made = service.http.get(f"/v1/imputations/{queued.json()['id']}").json()
    assert made["rows"] == sum(len(read_table(text.encode())) for text in FILES.values())
    content = service.http.get(f"/v1/imputations/{made['id']}/content").content
    artifact = service.http.get(f"/v1/models/{model['id']}/artifact").content
    tables = {n.removesuffix(".csv"): read_table(t.encode()) for n, t in sent.items()}
    expected = DatabaseSynthesizer.from_bytes(artifact).impute(tables, seed=3)
    for table, frame in expected.items():
        answer = service.http.get(f"/v1/imputations/{made['id']}/content", params={"table": table})
        assert answer.content == unzipped(content)[f"{table}.{form}"]
        file, separator = io.BytesIO(answer.content), ";" if table == "users" else ","
        found = pd.read_csv(file, sep=separator) if form == "csv" else pd.read_parquet(file)
        assert found.notna().all(axis=None)
        if form == "csv":
            text = pd.read_csv(io.StringIO(frame.to_csv(index=False)))
            pd.testing.assert_frame_equal(found, text)
        else:
            assert found.shape == frame.shape
            assert (found.dtypes[found.columns == "joined"] == "datetime64[us]").all()


def test_the_report_of_a_database_is_made_and_read_table_by_table(
    service: Running, model: dict[str, Any], dataset: dict[str, Any]
) -> None:
    place = f"/v1/models/{model['id']}/report"
    assert_problem(service.http.get(place), 404, "no-report")
    csv = {"Content-Type": "text/csv"}
    one_table = service.http.post("/v1/datasets", content=USERS, headers=csv)
    asked = {"dataset_id": one_table.json()["id"]}
    problem = assert_problem(service.http.post(place, json=asked), 422, "invalid-request")
    assert problem["errors"][0]["pointer"] == "/dataset_id"
    files = {**FILES, "users.csv": USERS.replace("plan", "tariff", 1)}
    renamed = upload(service, zipped(files)).json()
    answer = service.http.post(place, json={"dataset_id": renamed["id"]})
    problems = assert_problem(answer, 422, "invalid-request")["errors"]
    assert [(each["pointer"], each["column"]) for each in problems] == [
        ("/dataset_id", "plan"),
        ("/dataset_id", "tariff"),
    ]
    queued = service.http.post(place, json={"seed": 1})
    assert queued.status_code == 202, queued.text
    work(service, queued.json()["job_id"])
    report = service.http.get(place).json()
    assert set(report["tables"]) | set(report["left_out"]) == {"users", "visits"}
    assert report["keys"][0]["found"] == 1.0
    told = service.http.get(f"/v1/models/{model['id']}").json()["report"]
    assert set(told["verdicts"]) == {"fidelity", "utility", "likelihood", "privacy"}
    html = service.http.get(place, params={"format": "html"}).text
    for name in report["tables"]:
        assert f"?format=html&amp;table={name}" in html
        page = service.http.get(place, params={"format": "html", "table": name})
        assert page.headers["Content-Type"].startswith("text/html")
    assert service.http.get(place, params={"table": "users"}).json() == report["tables"]["users"]
    assert_problem(service.http.get(place, params={"table": "user"}), 422, "invalid-request")
