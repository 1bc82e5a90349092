"""What Prometheus reads: figures of the process and of the records, and nothing without bound."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from catalog import Catalog
from service.metrics import Metrics
from tests.running_service import Running

Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


def figures(service: Running) -> Figures:
    """Every sample that is told, by name and labels."""
    answer = service.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(found: Figures, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def n_requests(found: Figures, method: str, route: str, status: str) -> float:
    labels = {"method": method, "route": route, "status": status}
    return found.get(("gcvae_http_request_duration_seconds_count", frozenset(labels.items())), 0.0)


def test_requests_are_counted_by_the_template_of_their_path(service: Running) -> None:
    before = figures(service)
    for number in range(3):
        service.http.get(f"/v1/jobs/job_{number}")
    service.http.request("PROPFIND", f"/v1/{'x' * 50}")
    after = figures(service)
    for asked, n in ((("GET", "/v1/jobs/{job_id}", "404"), 3), (("other", "unmatched", "404"), 1)):
        assert n_requests(after, *asked) - n_requests(before, *asked) == n


def test_every_route_of_the_document_is_its_own_template(service: Running) -> None:
    service.http.get("/v1/models/mdl_none/dependencies")
    service.http.get("/docs/assets/none.js")
    found = figures(service)
    assert n_requests(found, "GET", "/v1/models/{model_id}/dependencies", "404")
    routes = {dict(labels)["route"] for name, labels in found if "_http_request_duration" in name}
    known = set(service.http.get("/openapi.json").json()["paths"])
    assert routes <= known | {
        "unmatched", "/docs", "/docs/assets", "/docs/start.js", "/openapi.json",
    }  # fmt: skip


def test_no_label_holds_an_id(service: Running, model: dict[str, Any]) -> None:
    service.http.get(f"/v1/jobs/{model['job_id']}", headers={"X-Request-ID": "order-17"})
    text = service.http.get("/metrics").text
    assert not re.search(r"(job|mdl|ds|smp|scr|imp)_0\w{20,}", text)
    assert "order-17" not in text


def test_a_trained_model_and_its_use_are_counted(service: Running, model: dict[str, Any]) -> None:
    before = figures(service)
    assert value(before, "gcvae_jobs_finished_total", kind="train", outcome="succeeded") >= 1
    assert value(before, "gcvae_job_attempts_total", kind="train") >= 1
    labels = {"kind": "train", "outcome": "succeeded", "le": "+Inf"}
    assert value(before, "gcvae_job_duration_seconds_bucket", **labels) >= 1
    assert value(before, "gcvae_records_up") == 1
    for _ in range(2):
        asked = {"rows": 40, "seed": 1}
        assert service.http.post(f"/v1/models/{model['id']}/samples", json=asked).status_code == 200
    after = figures(service)

    def grown(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert grown("gcvae_inline_rows_total", kind="sample") == 80
    assert grown("gcvae_model_cache_requests_total", result="hit") >= 1
    assert after["gcvae_model_cache_requests_total", frozenset({("result", "miss")})] >= 1


def test_the_event_loop_says_how_late_it_is(service: Running) -> None:
    before = value(figures(service), "gcvae_event_loop_lag_seconds_count")
    for _ in range(600):
        time.sleep(0.1)
        if value(figures(service), "gcvae_event_loop_lag_seconds_count") > before:
            return
    pytest.fail("no lag was counted in a minute")


def test_a_queued_job_stands_in_the_gauges(start: Callable[..., Running], cars: bytes) -> None:
    service = start()
    headers = {"Content-Type": "text/csv"}
    dataset = service.http.post("/v1/datasets", content=cars, headers=headers).json()
    service.http.post("/v1/models", json={"dataset_id": dataset["id"]})
    found = figures(service)
    assert value(found, "gcvae_queue_depth", queue="train") == 1
    assert value(found, "gcvae_queue_depth", queue="compute") == 0
    assert value(found, "gcvae_queue_oldest_age_seconds", queue="train") > 0
    assert value(found, "gcvae_jobs_created_total", kind="train") == 1
    assert value(found, "gcvae_jobs_finished_total", kind="score", outcome="failed") == 0


def test_every_process_tells_the_same_of_the_jobs(service: Running, model: dict[str, Any]) -> None:
    other = Catalog(service.settings.database())
    mine, others = (
        {
            (sample.name, tuple(sample.labels.items())): sample.value
            for family in Metrics(catalog.statistics).registry.collect()
            for sample in family.samples
            if re.match(r"gcvae_(job|lease|queue)", sample.name) and "_age_" not in sample.name
        }
        for catalog in (service.catalog, other)
    )
    other.close()
    assert len(mine) > 100
    assert mine == others


def test_figures_are_told_while_the_database_is_away(tmp_path: Any) -> None:
    catalog = Catalog(f"sqlite:///{tmp_path}/without-tables.db")
    found = {family.name: family for family in Metrics(catalog.statistics).registry.collect()}
    catalog.close()
    assert found["gcvae_records_up"].samples[0].value == 0
    assert "gcvae_http_requests_in_progress" in found
    assert "gcvae_queue_depth" not in found
