"""Dependency maps: every kind there is, as document and as picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.dependencies import KINDS, OFFERED_KINDS
from tests.running_service import Running, assert_problem


@pytest.mark.parametrize("kind", OFFERED_KINDS)
def test_a_map_is_symmetric_with_ones_on_its_diagonal(
    service: Running, model: dict[str, Any], kind: str
) -> None:
    path = f"/v1/models/{model['id']}/dependencies"
    found = service.http.get(path, params={"kind": kind}).json()
    tau = np.array(found["tau"])
    assert found["kind"] == kind
    assert found["columns"] == ["mpg", "cylinders", "fuel", "sold"]
    np.testing.assert_array_equal(tau, tau.T)
    np.testing.assert_array_equal(np.diag(tau), np.ones(4))
    assert np.shape(found["unsigned"]) == (4, 4)
    assert found["measure"]
    assert found["notes"]


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


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(OFFERED_KINDS)))
def test_a_kind_that_is_not_there_yet_names_those_that_are(
    service: Running, model: dict[str, Any], kind: str
) -> None:
    path = f"/v1/models/{model['id']}/dependencies"
    problem = assert_problem(service.http.get(path, params={"kind": kind}), 422, "not-offered")
    assert problem["offered"] == list(OFFERED_KINDS)


def test_the_local_map_at_a_row_is_not_there_yet(service: Running, model: dict[str, Any]) -> None:
    path = f"/v1/models/{model['id']}/dependencies"
    problem = assert_problem(service.http.post(path, json={"row": {}}), 422, "not-offered")
    assert problem["offered"] == list(OFFERED_KINDS)


@pytest.mark.parametrize(
    ("params", "accept", "status", "name", "place"),
    [
        ({"kind": "best"}, "*/*", 422, "invalid-request", "?kind: "),
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
