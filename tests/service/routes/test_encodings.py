"""Tables in other encodings than UTF-8, over REST: uploaded, learnt from, scored, completed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.running_service import Running, assert_problem, work
from tests.wordings import same_wording

CSV = {"Content-Type": "text/csv"}
TEXT = "größe,stadt\n" + "".join(
    f"{i % 17}.{i % 10},{('Köln', 'Fürth', '')[i % 3]}\n" for i in range(120)
)
ENCODED = TEXT.encode("cp1252")


def form(content: bytes, **fields: str) -> dict[str, Any]:
    return {"files": {"file": ("t.csv", content)}, "data": fields}


def test_the_encoding_of_a_table_is_a_field_or_a_parameter(service: Running) -> None:
    utf_16: dict[str, Any] = {"content": TEXT.encode("utf-16"), "headers": CSV}
    utf_16["params"] = {"encoding": "utf-16"}
    for request, encoding in (
        (form(ENCODED, encoding="windows-1252"), "cp1252"),
        (utf_16, "utf-16"),
    ):
        dataset = service.http.post("/v1/datasets", **request).json()
        assert dataset["schema"]["columns"][1]["levels"] == ["Fürth", "Köln"]
        assert dataset["schema"]["columns"][0]["name"] == "größe"
        place = f"/v1/datasets/{dataset['id']}"
        assert service.http.get(place).json()["encoding"] == dataset["encoding"] == encoding
        replaced = service.http.put(f"{place}/schema", json={"columns": []}).json()
        assert replaced["schema"] == dataset["schema"]
        profile = service.http.get(f"{place}/profile").json()
        assert {x["level"] for x in profile["columns"][1]["levels"]} == {"Köln", "Fürth"}


def test_a_refused_byte_comes_with_a_proposal_that_helps(service: Running) -> None:
    answer = service.http.post("/v1/datasets", **form(ENCODED))
    problem = assert_problem(answer, 422, "invalid-table")
    same_wording(problem["detail"])


@pytest.mark.parametrize(
    ("request_", "name", "place"),
    [
        (form(ENCODED, encoding="cp12525"), "invalid-table", "/encoding"),
        (
            {"content": ENCODED, "headers": CSV, "params": {"encoding": "qq"}},
            "invalid-table",
            "?encoding",
        ),
        (
            form(ENCODED) | {"params": {"encoding": "cp1252"}},
            "invalid-request",
            "?encoding",
        ),
        (form(b"PAR1..", encoding="cp1252"), "invalid-table", "Parquet"),
        (form(b"a,b\n1,\x81\n", encoding="cp1252"), "invalid-table", "line 2: byte 0x81"),
    ],
)
def test_an_encoding_that_can_not_be_is_refused_and_leaves_no_trace(
    service: Running, request_: dict[str, Any], name: str, place: str
) -> None:
    before = service.traces()
    problem = assert_problem(service.http.post("/v1/datasets", **request_), 422, name)
    assert place in problem["detail"]
    assert service.traces() == before


@pytest.mark.parametrize("content_type", ["form", "bare"])
def test_a_workbook_is_refused_with_the_way_out(service: Running, content_type: str) -> None:
    book = b"PK\x03\x04\x14\x00\x06\x00\x08\x00!\x00[Content_Types].xml \xa2\x04"
    request = form(book) if content_type == "form" else {"content": book, "headers": CSV}
    problem = assert_problem(service.http.post("/v1/datasets", **request), 422, "invalid-table")
    same_wording(problem["detail"])
    assert "read_excel" in problem["errors"][0]["expected"]
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    headers = {"Content-Type": kind}
    answer = service.http.post("/v1/datasets", content=book, headers=headers)
    problem = assert_problem(answer, 415, "unsupported-media-type")
    same_wording(problem["detail"])


@pytest.mark.slow
def test_a_model_learns_from_it_and_scores_completes_and_encodes_more_of_it(
    start: Callable[..., Running],
) -> None:
    service = start(max_inline_score_rows=130, score_shard_rows=4096)
    quick = {"preset": "paper-vae", "device": "cpu", "max_steps": 5}
    sent = {"content": ENCODED, "headers": CSV, "params": {"encoding": "cp1252"}}
    dataset = service.http.post("/v1/datasets", **sent).json()
    asked = {"dataset_id": dataset["id"], "training": quick}
    model = service.http.post("/v1/models", json=asked).json()
    work(service, model["job_id"])
    assert service.http.get(f"/v1/models/{model['id']}").json()["status"] == "ready"
    plain = TEXT.encode()
    for call, params in (
        ("scores", {"draws": "5", "format": "csv"}),
        ("imputations", {"format": "csv"}),
        ("encodings", {"format": "csv"}),
    ):
        path = f"/v1/models/{model['id']}/{call}"
        expected = service.http.post(path, content=plain, headers=CSV, params=params)
        assert expected.status_code == 200, expected.text
        encoded = {**params, "encoding": "cp1252"}
        for request in (
            {"content": ENCODED, "headers": CSV, "params": encoded},
            form(ENCODED, encoding="cp1252") | {"params": params},
        ):
            answer = service.http.post(path, **request)
            assert answer.content == expected.content
        many = {"content": ENCODED + ENCODED.split(b"\n", 1)[1], "headers": CSV, "params": encoded}
        queued = service.http.post(path, **many).json()
        work(service, queued["job_id"])
        job = service.http.get(f"/v1/jobs/{queued['job_id']}").json()
        assert job["status"] == "succeeded", job
        done = service.http.get(f"/v1/{call}/{queued['id']}/content").content
        assert done.count(b"\n") == 241
        refused = service.http.post(path, content=ENCODED, headers=CSV, params=params)
        assert_problem(refused, 422, "invalid-table")
        json_rows = {"json": {"rows": [{"stadt": "Köln"}]}, "params": {"encoding": "cp1252"}}
        assert_problem(service.http.post(path, **json_rows), 422, "invalid-request")
    completed = service.http.post(
        f"/v1/models/{model['id']}/imputations", **sent | {"params": {"encoding": "cp1252"}}
    )
    assert "Köln" in completed.content.decode("utf-8")
