"""Heads of requests have a limit, and bodies a depth: beyond it comes a clear answer."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import httpx
import pytest

from tests.running_service import Running, assert_problem
from tests.wordings import same_wording

LIMIT = 4096


@pytest.fixture
def limited(start: Callable[..., Running]) -> Running:
    """A service that takes 4 KiB."""
    return start(max_head_bytes=LIMIT)


@pytest.mark.parametrize("where", ["value", "name", "line", "many"])
def test_a_head_over_the_limit_is_refused_by_name_and_others_are_answered(
    limited: Running, where: str
) -> None:
    long = "x" * LIMIT
    headers = {
        "value": {"X-Long": long},
        "name": {long: "1"},
        "line": {},
        "many": {f"X-{i}": "v" * 20 for i in range(300)},
    }[where]
    query = f"?{long}" if where == "line" else ""
    refused = limited.http.get(f"/v1/jobs{query}", headers=headers)
    problem = assert_problem(refused, 431, "head-too-long")
    assert (problem["limit"], problem["setting"]) == (LIMIT, "GCVAE_MAX_HEAD_BYTES")
    assert limited.http.get("/v1/jobs").status_code == 200
    fits = {"X-Long": "x" * (LIMIT // 2)}
    assert limited.http.get("/v1/jobs", headers=fits).status_code == 200


def test_a_head_that_never_ends_is_cut_off(limited: Running) -> None:
    address = httpx.URL(limited.url)
    with socket.create_connection((address.host, address.port), timeout=60) as connection:
        connection.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n")
        sent, answer = 0, b""
        connection.settimeout(0.01)
        while not answer and sent < 1000 * LIMIT:
            sent += len(b"X-More: 1\r\n" * 50)
            connection.sendall(b"X-More: 1\r\n" * 50)
            try:
                answer = connection.recv(1000)
            except TimeoutError:
                continue
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert b"application/problem+json" in answer


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x02\x00\x01", b"nonsense\r\n\r\n", b"GET  HTTP\r\n\r\n"]
)
def test_what_is_no_http_is_answered_by_400_as_before(limited: Running, sent: bytes) -> None:
    address = httpx.URL(limited.url)
    with socket.create_connection((address.host, address.port), timeout=60) as connection:
        connection.sendall(sent)
        assert connection.recv(12) == b"HTTP/1.1 400"


def test_a_body_after_a_head_and_a_second_request_are_no_part_of_it(limited: Running) -> None:
    table = b"a,b\n" + b"1,2\n2,1\n" * LIMIT
    csv = {"Content-Type": "text/csv"}
    for _ in range(2):
        sent = limited.http.post("/v1/datasets", content=table, headers=csv)
        assert sent.status_code == 201, sent.text


@pytest.mark.parametrize("depth", [201, 202, 10_000, 1_000_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_a_body_that_nests_too_deeply_is_refused_by_name(
    service: Running, depth: int, brackets: str
) -> None:
    opening = '{"a":' if brackets == "{}" else "["
    text = '{"dataset_id":' + opening * depth + "1" + brackets[1] * depth + "}"
    refused = service.http.post(
        "/v1/models", content=text, headers={"Content-Type": "application/json"}
    )
    problem = assert_problem(refused, 422, "invalid-request")
    same_wording(problem["detail"])
    shallow = {"dataset_id": json.loads("[" * 150 + "]" * 150)}
    assert_problem(service.http.post("/v1/models", json=shallow), 422, "invalid-request")
