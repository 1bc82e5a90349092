"""The pages are served as they are meant: one document, its files, and nothing of anybody else."""

from __future__ import annotations

import re

import httpx
import pytest

from service.site.pages import ASSETS, FILES, PATHS
from tests.running_service import Running, assert_problem

DEEP = [path.replace("{rest:path}", "some_1/report") for path in PATHS]


@pytest.fixture(scope="module")
def page(service: Running) -> httpx.Response:
    return service.http.get("/")


@pytest.mark.parametrize("path", DEEP)
def test_every_page_is_the_same_document_whatever_its_path(
    service: Running, page: httpx.Response, path: str
) -> None:
    response = service.http.get(path)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert response.content == page.content
    assert service.http.head(path).status_code == 200


def test_an_address_of_nothing_is_a_page_to_people_and_a_problem_to_programs(
    service: Running, page: httpx.Response
) -> None:
    shown = service.http.get("/nowhere", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (shown.status_code, shown.content) == (404, page.content)
    assert "default-src 'self'" in shown.headers["Content-Security-Policy"]
    assert_problem(service.http.get("/nowhere"), 404, "not-found")
    assert_problem(
        service.http.get("/v1/nowhere", headers={"Accept": "text/html"}), 404, "not-found"
    )
    refused = service.http.post("/nowhere", headers={"Accept": "text/html"})
    assert refused.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/", f"{ASSETS}/style.css", f"{ASSETS}/main.js"])
def test_a_page_may_load_from_here_only_and_nobody_may_frame_it(
    service: Running, path: str
) -> None:
    headers = service.http.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_the_document_has_no_script_or_style_inside(page: httpx.Response) -> None:
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*src=)", page.text)
    assert not re.search(r"https?://", page.text)


def test_what_the_document_and_the_modules_name_is_there(
    service: Running, page: httpx.Response
) -> None:
    named = set(re.findall(rf'(?:src|href)="({ASSETS}/[^"]+)"', page.text))
    for module in FILES.glob("*.js"):
        imported = re.findall(r'(?:from|import\()\s*"\./([\w.]+)"', module.read_text())
        named |= {f"{ASSETS}/{name}" for name in imported}
    assert len(named) > 15
    for path in named:
        assert service.http.get(path).status_code == 200, path
    served = {path.removeprefix(f"{ASSETS}/") for path in named} | {"page.html"}
    assert {path.name for path in FILES.iterdir()} == served, "a file that no page needs"


def test_no_file_of_the_pages_asks_another_host() -> None:
    for path in FILES.iterdir():
        hosts = set(re.findall(r"(?:https?:)?//([a-z][\w-]*\.[\w.-]+)", path.read_text()))
        assert hosts <= {"www.w3.org"}, path.name  # the name of SVG, which nobody asks


def test_no_file_of_the_pages_is_longer_than_five_hundred_lines() -> None:
    assert max(len(path.read_text().splitlines()) for path in FILES.iterdir()) <= 500


def test_a_file_that_is_still_the_same_is_not_sent_again(service: Running) -> None:
    first = service.http.get(f"{ASSETS}/style.css")
    assert first.headers["Cache-Control"] == "no-cache"
    again = service.http.get(
        f"{ASSETS}/style.css", headers={"If-None-Match": first.headers["ETag"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["Content-Security-Policy"] == first.headers["Content-Security-Policy"]


def test_the_pages_hide_nothing_of_the_api(service: Running) -> None:
    for path in ("/v1/datasets", "/v1/models", "/v1/jobs", "/healthz", "/openapi.json"):
        assert service.http.get(path).headers["Content-Type"] == "application/json", path
    assert "swagger" in service.http.get("/docs").text
    assert service.http.get("/metrics").headers["Content-Type"].startswith("text/plain")
    for path in ("/nothing", f"{ASSETS}/nothing.js", f"{ASSETS}/../pages.py", "/v1/nothing"):
        assert_problem(service.http.get(path), 404, "not-found")
    assert_problem(service.http.post("/"), 405, "method-not-allowed")


def test_lists_are_searched_and_sorted_by_the_service(service: Running) -> None:
    csv = {"Content-Type": "text/csv"}
    ids = {
        name: service.http.post(
            "/v1/datasets", params={"name": name}, content=b"a,b\n1,2\n2,3\n3,1\n", headers=csv
        ).json()["id"]
        for name in ("b Zürich", "A zürich", "c 100%", "d 100x")
    }
    both = {"b Zürich", "A zürich"}

    def listed(**query: object) -> list[str]:
        items, cursor = [], None
        while True:
            asked = {"limit": 1, **query} | ({} if cursor is None else {"cursor": cursor})
            page = service.http.get("/v1/datasets", params=asked).json()
            items += [item["name"] for item in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                return items

    assert set(listed(search="ZÜRICH")) == both
    assert listed(search="zürich", sort="oldest") == ["b Zürich", "A zürich"]
    assert listed(search="zürich") == ["A zürich", "b Zürich"]
    assert listed(search="rich", sort="name") == ["A zürich", "b Zürich"]
    assert listed(search="100%") == ["c 100%"]
    assert listed(search=ids["d 100x"]) == ["d 100x"]
    assert listed(search="no such name") == []
    refused = service.http.get("/v1/datasets", params={"sort": "name", "cursor": "AAAA"})
    assert_problem(refused, 422, "invalid-cursor")
    for dataset_id in ids.values():
        service.http.delete(f"/v1/datasets/{dataset_id}")


def test_a_dataset_has_presets_with_the_time_that_a_training_is_told_to_take(
    service: Running, cars: bytes
) -> None:
    csv = {"Content-Type": "text/csv"}
    dataset = service.http.post("/v1/datasets", content=cars, headers=csv).json()
    found = service.http.get(f"/v1/datasets/{dataset['id']}/presets").json()["presets"]
    fast = next(preset for preset in found if preset["name"] == "fast")
    asked = {"dataset_id": dataset["id"], "training": {"preset": "fast"}}
    job_id = service.http.post("/v1/models", json=asked).json()["job_id"]
    job = service.http.get(f"/v1/jobs/{job_id}").json()
    assert fast["estimate"] == job["estimate"]
    assert fast["report_estimate"] is None  # under 1,000 rows none follows by itself
    assert (job["model_name"], job["dataset_name"]) == (dataset["name"], dataset["name"])
    assert all(preset["description"] for preset in found)
    brief = service.http.get("/v1/models", params={"brief": True, "limit": 1}).json()["items"][0]
    assert brief["schema"] is None
    assert brief["record"] is None
    service.http.post(f"/v1/jobs/{job_id}/cancel")
