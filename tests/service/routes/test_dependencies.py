"""Dependency maps: every kind there is, as document and as picture."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.running_service import Running, assert_problem, library
from tests.service import works


def test_a_map_stands_in_the_order_of_another_kind(service: Running, model: dict[str, Any]) -> None:
    path = f"/v1/models/{model['id']}/dependencies"
    own = {
        kind: service.http.get(path, params={"kind": kind}).json() for kind in ("total", "expected")
    }
    asked = {"kind": "expected", "order": "total"}
    found = service.http.get(path, params=asked).json()
    assert found == own["expected"] | {"order": own["total"]["order"]}
    assert found["nominal"] == ["fuel"]
    drawn = service.http.get(path, params=asked | {"format": "png"}).content
    synthesizer = library(service, model)
    order = synthesizer.dependencies("total").order
    assert drawn == synthesizer.dependencies("expected").picture("png", order)
    for kind in ("local", "totl"):
        refused = service.http.get(path, params={"order": kind})
        problem = assert_problem(refused, 422, "invalid-request")
        assert problem["errors"][0]["pointer"] == "?order"


@pytest.mark.parametrize(
    ("params", "accept", "media_type", "start"),
    [
        ({}, "*/*", "application/json", b"{"),
        ({}, "image/png", "image/png", b"\x89PNG"),
        ({}, "text/html, image/svg+xml;q=0.9, */*;q=0.1", "image/svg+xml", b"<?xml"),
        ({"format": "png"}, "application/json", "image/png", b"\x89PNG"),
        ({"format": "svg"}, "*/*", "image/svg+xml", b"<?xml"),
    ],
)
def test_the_form_follows_format_or_accept(
    service: Running,
    model: dict[str, Any],
    params: dict[str, str],
    accept: str,
    media_type: str,
    start: bytes,
) -> None:
    path = f"/v1/models/{model['id']}/dependencies"
    response = service.http.get(path, params=params, headers={"Accept": accept})
    assert response.headers["Content-Type"].startswith(media_type)
    assert response.content.startswith(start)
    again = {"Accept": accept, "If-None-Match": response.headers["ETag"]}
    assert service.http.get(path, params=params, headers=again).status_code == 304


ROW = {"mpg": 20.5, "cylinders": 6, "fuel": None, "sold": True}


def test_a_map_is_made_once_for_all_its_forms(service: Running, model: dict[str, Any]) -> None:
    path = f"/v1/models/{model['id']}/dependencies"
    asked = {"kind": "total", "seed": 99}
    first = service.http.get(path, params=asked)
    kept = (model["id"], model["artifact_sha256"], "total", "99")
    look = service.resources.inline.run(partial(works.kept_map, key=kept))
    found = asyncio.run_coroutine_threadsafe(look, service.loop).result(20)
    assert found.to_json() == first.json()
    picture = service.http.get(path, params={**asked, "format": "png"})
    assert picture.content == found.picture("png")


def test_a_local_map_is_drawn_too(service: Running, model: dict[str, Any]) -> None:
    path = f"/v1/models/{model['id']}/dependencies"
    drawn = service.http.post(path, json={"row": ROW}, params={"format": "svg"})
    assert drawn.headers["Content-Type"].startswith("image/svg+xml")
    by_accept = service.http.post(path, json={"row": ROW}, headers={"Accept": "image/png"})
    assert by_accept.content.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("body", "name", "place"),
    [
        ({}, "invalid-request", "/row: "),
        ({"row": ROW, "z": [0, 0]}, "invalid-request", "/row: "),
        ({"z": [0.0]}, "invalid-input", "/z: "),
        ({"row": {"hp": 1}}, "unknown-column", "/row/hp"),
        ({"row": {"mpg": "fast"}}, "invalid-table", "/row/mpg"),
        ({"row": {"fuel": "steam"}}, "invalid-table", "/row"),
        ({"row": [1]}, "invalid-request", "/row"),
    ],
)
def test_a_place_that_is_none_is_refused(
    service: Running, model: dict[str, Any], body: dict[str, Any], name: str, place: str
) -> None:
    path = f"/v1/models/{model['id']}/dependencies"
    detail = assert_problem(service.http.post(path, json=body), 422, name)["detail"]
    assert detail.startswith(place)


@pytest.mark.parametrize(
    ("params", "accept", "status", "name", "place"),
    [
        ({"kind": "best"}, "*/*", 422, "invalid-request", "?kind: "),
        ({"kind": "local"}, "*/*", 422, "invalid-request", "?kind: "),
        ({"format": "gif"}, "*/*", 422, "invalid-request", "?format: "),
        ({"seed": "-1"}, "*/*", 422, "invalid-request", "?seed: "),
        ({}, "text/html", 406, "not-acceptable", "Accept"),
    ],
)
def test_a_map_that_can_not_be_is_refused(
    service: Running,
    model: dict[str, Any],
    params: dict[str, str],
    accept: str,
    status: int,
    name: str,
    place: str,
) -> None:
    path = f"/v1/models/{model['id']}/dependencies"
    response = service.http.get(path, params=params, headers={"Accept": accept})
    assert assert_problem(response, status, name)["detail"].startswith(place)
