"""The OpenAPI page and its document."""

from __future__ import annotations

import re

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.running_service import Running, train

CALLS = {
    ("GET", "/v1/connections"), ("POST", "/v1/connections"),
    ("GET", "/v1/connections/{connection_id}"), ("DELETE", "/v1/connections/{connection_id}"),
    ("POST", "/v1/connections/{connection_id}/test"), ("POST", "/v1/samples/{result_id}/export"),
    ("GET", "/v1/webhooks"),
    ("POST", "/v1/webhooks"),
    ("GET", "/v1/webhooks/{webhook_id}"),
    ("DELETE", "/v1/webhooks/{webhook_id}"),
    ("POST", "/v1/webhooks/{webhook_id}/ping"),
    ("GET", "/v1/webhooks/{webhook_id}/deliveries"),
    ("POST", "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry"),
    ("GET", "/v1/schedules"), ("POST", "/v1/schedules"),
    ("GET", "/v1/schedules/{schedule_id}"), ("PATCH", "/v1/schedules/{schedule_id}"),
    ("DELETE", "/v1/schedules/{schedule_id}"),
    ("GET", "/v1/schedules/{schedule_id}/runs"), ("POST", "/v1/schedules/{schedule_id}/runs"),
    ("GET", "/v1/schedules/{schedule_id}/runs/{run_id}"),
    ("POST", "/v1/datasets"), ("GET", "/v1/datasets"), ("GET", "/v1/datasets/{dataset_id}"),
    ("DELETE", "/v1/datasets/{dataset_id}"), ("PUT", "/v1/datasets/{dataset_id}/schema"),
    ("PATCH", "/v1/datasets/{dataset_id}/schema"),
    ("GET", "/v1/datasets/{dataset_id}/profile"), ("GET", "/v1/datasets/{dataset_id}/rows"),
    ("PATCH", "/v1/datasets/{dataset_id}"), ("PATCH", "/v1/models/{model_id}"),
    ("GET", "/v1/datasets/{dataset_id}/privacy"), ("PUT", "/v1/datasets/{dataset_id}/privacy"),
    ("GET", "/v1/datasets/{dataset_id}/rules"), ("POST", "/v1/models"), ("GET", "/v1/models"),
    ("POST", "/v1/models/import"),
    ("GET", "/v1/models/{model_id}"), ("DELETE", "/v1/models/{model_id}"),
    ("GET", "/v1/models/{model_id}/artifact"), ("POST", "/v1/models/{model_id}/samples"),
    ("GET", "/v1/samples/{result_id}"), ("GET", "/v1/samples/{result_id}/content"),
    ("DELETE", "/v1/samples/{result_id}"), ("POST", "/v1/models/{model_id}/scores"),
    ("GET", "/v1/scores/{result_id}"), ("GET", "/v1/scores/{result_id}/content"),
    ("DELETE", "/v1/scores/{result_id}"), ("POST", "/v1/models/{model_id}/imputations"),
    ("GET", "/v1/imputations/{result_id}"), ("GET", "/v1/imputations/{result_id}/content"),
    ("DELETE", "/v1/imputations/{result_id}"), ("GET", "/v1/models/{model_id}/dependencies"),
    ("POST", "/v1/models/{model_id}/dependencies"), ("GET", "/v1/jobs"),
    ("POST", "/v1/models/{model_id}/encodings"), ("GET", "/v1/models/{model_id}/manifold"),
    ("GET", "/v1/encodings/{result_id}"), ("GET", "/v1/encodings/{result_id}/content"),
    ("DELETE", "/v1/encodings/{result_id}"), ("GET", "/v1/models/{model_id}/report"),
    ("POST", "/v1/models/{model_id}/report"), ("GET", "/v1/reports/{result_id}"),
    ("GET", "/v1/models/{model_id}/dossier"),
    ("GET", "/v1/reports/{result_id}/content"), ("DELETE", "/v1/reports/{result_id}"),
    ("GET", "/v1/jobs/{job_id}"), ("GET", "/v1/jobs/{job_id}/events"),
    ("POST", "/v1/jobs/{job_id}/cancel"), ("POST", "/v1/jobs/{job_id}/retry"),
    ("GET", "/v1/datasets/{dataset_id}/presets"), ("POST", "/v1/session"), ("GET", "/v1/session"),
    ("DELETE", "/v1/session"), ("PATCH", "/v1/session"), ("POST", "/v1/sign-on"),
    ("POST", "/v1/sign-on/answer"),
    ("GET", "/v1/work"),
    ("GET", "/v1/audit"), ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"),
}  # fmt: skip

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def test_the_document_holds_every_call(service: Running) -> None:
    document = service.http.get("/openapi.json").json()
    calls = {(m.upper(), path) for path, item in document["paths"].items() for m in item}
    assert calls == CALLS


def test_the_page_asks_no_outside_host(service: Running) -> None:
    page = service.http.get("/docs")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    named = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert named
    assert all(name.startswith("/") and not name.startswith("//") for name in named)
    for name in named:
        assert service.http.get(name).status_code == 200
    assert "//" not in page.text


@pytest.mark.slow
def test_whatever_the_document_allows_is_answered_as_it_says(
    service: Running,
) -> None:
    # A model and a table of its own: some calls cap the table and restrict the model for good.
    model = train(service, b"a,b\n" + b"".join(b"%d,%d\n" % (i % 7, i % 3) for i in range(70)))
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == len(CALLS)
    # The first answer waits for torch, on a busy machine longer than these requests would.
    assert service.http.post(f"/v1/models/{model['id']}/samples", json={"rows": 1}).is_success
    real = {"model_id": model["id"], "dataset_id": model["dataset_id"], "job_id": model["job_id"]}
    binding = {("put", "/v1/datasets/{dataset_id}/privacy"), ("patch", "/v1/models/{model_id}")}
    for operation in sorted(operations, key=lambda one: (one.method, one.path) in binding):
        if not operation.path.endswith("/events"):
            check(operation, {} if operation.method == "delete" else real)


def check(operation: APIOperation, real: dict[str, str]) -> None:
    """Send what the document allows; the answer must be one that it names, and no failure."""

    @settings(max_examples=8, derandomize=True, suppress_health_check=[*HealthCheck])
    @given(case=operation.as_strategy())
    def ask(case: schemathesis.Case) -> None:
        used = {name: value for name, value in real.items() if name in case.path_parameters}
        case.path_parameters = {**case.path_parameters, **used}
        case.call_and_validate(checks=CHECKS)

    ask()
