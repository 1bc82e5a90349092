"""What a browser is told with every answer, and by which names it may come."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from catalog.records import Scope
from tests.running_service import Running, assert_problem
from tests.wordings import same_wording

OPEN = ["/readyz", "/healthz", "/openapi.json", "/docs", "/docs/start.js", "/", "/assets/main.js"]
ANSWERS = [*OPEN, "/metrics", "/v1/models", "/v1/models/mdl_none", "/nothing", "/docs/assets/none"]


@pytest.mark.parametrize("path", ANSWERS)
def test_every_answer_is_believed_as_it_is_and_shown_in_no_frame(
    service: Running, path: str
) -> None:
    headers = service.http.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    policy = headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    scripts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert scripts.get("script-src", scripts["default-src"]) in ("'self'", "'none'")


@pytest.mark.parametrize("path", [*OPEN, "/metrics", "/v1/models"])
def test_a_name_that_was_made_to_point_here_is_refused_whatever_is_asked(
    service: Running, path: str
) -> None:
    response = service.http.get(path, headers={"Host": "rebound.example"})
    problem = assert_problem(response, 403, "foreign-site")
    same_wording(problem["detail"])


@pytest.mark.parametrize("host", ["10.1.2.3:8000", "[::1]:8000", "localhost"])
def test_probes_come_by_an_address(service: Running, host: str) -> None:
    for path in ("/healthz", "/readyz"):
        assert service.http.get(path, headers={"Host": host}).status_code == 200


def test_with_keys_every_name_reaches_what_needs_none(start: Callable[..., Running]) -> None:
    service = start()
    service.catalog.keys.create("acme", "reader", [Scope.READ])
    for path in OPEN:
        assert service.http.get(path, headers={"Host": "tables.example"}).status_code == 200, path
