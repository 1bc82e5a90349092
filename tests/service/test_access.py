"""A service without keys answers its own machine, and nobody who borrows its reader's browser."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from catalog import upgrade
from service.errors import StartError
from service.http.response_headers import REQUEST_ID
from service.server import run
from service.settings import ServiceSettings
from tests.running_service import Running, assert_problem, settings_in
from tests.wordings import refuses, same_wording

SERVE = """
from service.server import run
from service.settings import ServiceSettings

run(ServiceSettings(), lambda url: print(url, flush=True))
"""


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "::"])
def test_an_address_that_others_reach_is_refused(tmp_path: Path, host: str) -> None:
    with refuses(StartError):
        run(settings_in(tmp_path, host=host))


def test_a_taken_port_is_named(service: Running, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, port=int(service.url.rsplit(":", 1)[1]))
    upgrade(settings.database())
    with refuses(StartError, names=str(settings.port)):
        run(settings)


def test_a_database_without_tables_is_named(tmp_path: Path) -> None:
    with refuses(StartError):
        run(settings_in(tmp_path))


def test_a_foreign_host_name_is_refused(service: Running) -> None:
    response = service.http.get("/v1/datasets", headers={"Host": "rebound.example"})
    problem = assert_problem(response, 403, "foreign-site")
    same_wording(problem["detail"])


def test_a_foreign_page_changes_nothing(service: Running) -> None:
    before = service.traces()
    foreign = {"Origin": "https://example.org", "Content-Type": "text/csv"}
    response = service.http.post("/v1/datasets", content=b"a\n1\n2\n", headers=foreign)
    assert_problem(response, 403, "foreign-site")
    assert service.traces() == before
    own = foreign | {"Origin": service.url}
    response = service.http.post("/v1/datasets", content=b"a\n1\n2\n", headers=own)
    assert response.status_code == 201


@pytest.mark.parametrize("path", ["/healthz", "/v1/datasets", "/v1/nothing", "/docs"])
def test_every_response_carries_a_request_id(service: Running, path: str) -> None:
    assert service.http.get(path, headers={REQUEST_ID: "mine-1"}).headers[REQUEST_ID] == "mine-1"
    made, forged = (
        service.http.get(path, headers=headers).headers[REQUEST_ID]
        for headers in ({}, {REQUEST_ID: "two words"})
    )
    assert made
    assert forged not in ("two words", made)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/datasets", "GET, POST"),
        ("PUT", "/v1/models/mdl_any", "DELETE, GET, PATCH"),
        ("GET", "/v1/jobs/job_any/cancel", "POST"),
        ("POST", "/healthz", "GET"),
        ("POST", "/docs", "GET"),
    ],
)
def test_a_wrong_method_is_a_problem_that_names_every_right_one(
    service: Running, method: str, path: str, allowed: str
) -> None:
    response = service.http.request(method, path, headers={"Accept": "text/plain"})
    problem = assert_problem(response, 405, "method-not-allowed")
    assert response.headers["Allow"] == allowed
    assert f"{method} is not allowed at {path}, but {allowed}" in problem["detail"]
    head = service.http.head(path)
    assert (head.status_code, head.headers["Allow"]) == (405, allowed)


@pytest.mark.parametrize(
    ("method", "path", "known"),
    [
        ("GET", "/v1/models/mdl_any/dependencies?sead=1", "kind, format, seed"),
        ("POST", "/v1/models/mdl_any/scores?sead=1", "draws, tolerance, seed, measure"),
        ("POST", "/v1/models/mdl_any/samples?sead=1", "table"),
        ("POST", "/v1/datasets?sead=1", "name, schema"),
        ("GET", "/v1/jobs/job_any?sead=1", "no parameters"),
        ("GET", "/v1/jobs?sead=1", "limit, cursor, status, kind, model_id"),
    ],
)
def test_an_unknown_query_parameter_is_refused_and_the_known_ones_are_listed(
    service: Running, method: str, path: str, known: str
) -> None:
    response = service.http.request(method, path, json={"rows": 1} if method == "POST" else None)
    problem = assert_problem(response, 422, "invalid-request")
    assert problem["errors"][0]["pointer"] == "?sead"
    assert known in problem["errors"][0]["expected"]


def test_a_query_parameter_stands_once(service: Running) -> None:
    response = service.http.get("/v1/jobs?limit=1&limit=2&limit=3")
    problem = assert_problem(response, 422, "invalid-request")
    assert problem["errors"][0]["pointer"] == "?limit"
    assert "3 times" in problem["errors"][0]["message"]


def test_ready_names_each_server_and_what_is_wrong(start: Callable[..., Running]) -> None:
    service = start()
    ready = service.http.get("/readyz")
    assert ready.json() == {
        "status": "ready", "checks": {"database": "ok", "store": "ok", "broker": "ok"},
    }  # fmt: skip
    folder = service.settings.home_dir / "queue"
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    folder.write_text("no folder")
    broken = service.http.get("/readyz")
    assert broken.status_code == 503
    assert broken.json()["checks"]["broker"] != "ok"
    assert broken.json()["checks"]["store"] == "ok"
    assert service.http.get("/healthz").json() == {"status": "alive"}


def test_a_model_is_asked_for_though_the_broker_is_down(
    start: Callable[..., Running], cars: bytes
) -> None:
    service = start(broker_url="redis://127.0.0.1:1/0")
    headers = {"Content-Type": "text/csv"}
    dataset = service.http.post("/v1/datasets", content=cars, headers=headers).json()
    response = service.http.post("/v1/models", json={"dataset_id": dataset["id"]})
    assert response.status_code == 202
    job = service.http.get(response.headers["Location"]).json()
    assert job["status"] == "queued"


def test_the_process_is_ready_without_torch_and_ends_on_sigterm(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    upgrade(settings.database())
    environment = os.environ | {
        "GCVAE_HOME_DIR": str(tmp_path), "GCVAE_PORT": "0", "GCVAE_PRELOAD_TORCH": "false",
    }  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert httpx.get(f"{url}/healthz").json() == {"status": "alive"}
            loaded = Path(f"/proc/{process.pid}/maps").read_text()
            assert "torch" not in loaded
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in (0, -signal.SIGTERM)
            assert process.stdout.read() == "", "logs belong on standard error"
        finally:
            process.kill()


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCVAE_MAX_ROWS", "7")
    monkeypatch.setenv("GCVAE_ALLOWED_HOSTS", "service, localhost")
    monkeypatch.setenv("GCVAE_STORE_URL", "s3://bucket/prefix")
    settings = ServiceSettings()
    assert settings.max_rows == 7
    assert settings.allowed_hosts == ("service", "localhost")
    assert settings.store() == "s3://bucket/prefix"
    assert settings.database().startswith("sqlite:////")
