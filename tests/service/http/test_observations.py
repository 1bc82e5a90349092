"""A request can be followed: its id in the lines of API and worker, its span around the job's."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import MissingExtraError
from runtime.settings import RuntimeSettings
from runtime.traces import Traces, make_traces
from tests.running_service import Running, attempt_by_child
from tests.servers.trace_collector import TraceCollector, trace_collector

ROOT = Path(__file__).parents[3]
STAND_IN = ROOT / "tests" / "faults" / "stand_in"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def collector() -> Iterator[TraceCollector]:
    """A collector that listens until the test is over."""
    with trace_collector() as collector:
        yield collector


def said(span: Any) -> dict[str, Any]:
    """A span's attributes."""
    found = {pair.key.removeprefix("gcvae."): pair.value for pair in span.attributes}
    return {name: v.string_value or v.int_value for name, v in found.items()}


def queue_job(service: Running, table: bytes, **headers: str) -> str:
    """The id of a queued training job."""
    csv = {"Content-Type": "text/csv"}
    dataset = service.http.post("/v1/datasets", content=table, headers=csv).json()
    training = {"preset": "paper-vae", "device": "cpu", "max_steps": 2, "evaluate_every_steps": 1}
    asked = {"dataset_id": dataset["id"], "training": training}
    return str(service.http.post("/v1/models", json=asked, headers=headers).json()["job_id"])


@pytest.mark.slow
def test_a_trace_goes_from_the_request_to_the_attempt_at_its_job(
    start: Callable[..., Running], cars: bytes, collector: TraceCollector
) -> None:
    service = start(traces_endpoint=collector.endpoint)
    job_id = queue_job(service, cars, traceparent=PARENT)
    traces = Traces(collector.endpoint, 1.0, "worker")
    attempt_by_child(service, job_id, traces)
    traces.close()
    service.resources.traces.close()
    request, attempt = collector.named("POST /v1/models"), collector.named("attempt at train")
    assert request.trace_id.hex() == attempt.trace_id.hex() == PARENT.split("-")[1]
    assert request.parent_span_id.hex() == PARENT.split("-")[2]
    assert attempt.parent_span_id == request.span_id
    assert said(attempt) == {"job": job_id, "attempt": 1, "kind": "train", "ending": "trained"}
    assert said(request)["status"] == 202
    assert request.start_time_unix_nano < attempt.start_time_unix_nano < attempt.end_time_unix_nano


def test_traces_are_off_unless_they_are_asked_for(service: Running, cars: bytes) -> None:
    assert service.resources.traces.endpoint is None
    job_id = queue_job(service, cars, traceparent=PARENT)
    assert service.catalog.workspace("default").jobs.get(job_id).traceparent is None


def test_a_share_of_none_is_traced_but_not_sent(collector: TraceCollector) -> None:
    traces = Traces(collector.endpoint, 0.0, "api")
    with traces.span("GET /") as span:
        assert str(span.traceparent).endswith("-00")
    traces.close()
    assert collector.spans == []


@pytest.mark.slow
def test_a_collector_that_is_away_costs_no_work(caplog: pytest.LogCaptureFixture) -> None:
    traces = Traces("http://127.0.0.1:9/v1/traces", 1.0, "api")
    with caplog.at_level(logging.CRITICAL), traces.span("GET /"):
        pass
    traces.close()


def test_traces_without_opentelemetry_are_refused_by_name() -> None:
    script = (
        "import sys; sys.modules['opentelemetry.sdk'] = None\n"
        "from runtime.settings import RuntimeSettings\n"
        "from runtime.traces import make_traces\n"
        "make_traces(RuntimeSettings(traces_endpoint='http://127.0.0.1:4318/v1/traces'), 'api')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    error = done.stderr.splitlines()[-1]
    assert error.startswith("runtime.errors.MissingExtraError: GCVAE_TRACES_ENDPOINT is set")
    assert "pip install 'gcvae-server[traces]'" in error


def test_the_error_says_which_variable_and_which_extra() -> None:
    error = MissingExtraError("GCVAE_X", "Y", "z")
    assert (error.variable, error.extra) == ("GCVAE_X", "z")
    assert make_traces(RuntimeSettings(), "api").endpoint is None


def test_the_id_of_a_request_stands_in_the_lines_of_its_job(
    service: Running, cars: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The job's own process, which has the stand-in of the library, writes to this one's standard
    error.
    """
    job_id = queue_job(service, cars, **{"X-Request-ID": "order-17"})
    assert service.catalog.workspace("default").jobs.get(job_id).request_id == "order-17"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GCVAE_FIRST_CHECKPOINT_SECONDS", "0")
        environment.setenv("GCVAE_LOG_FORMAT", "json")
        environment.chdir(tmp_path)  # which Python looks into before the stand-in's folder
        environment.setenv("PYTHONPATH", os.pathsep.join(map(str, (STAND_IN, ROOT))))
        attempt_by_child(service, job_id)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if "{" in line[:1]]
    checkpoint = next(line for line in lines if line["event"] == "checkpoint")
    ids = {name: checkpoint[name] for name in ("request", "job", "attempt")}
    assert ids == {"request": "order-17", "job": job_id, "attempt": 1}


def test_the_lines_of_a_request_say_its_id(
    service: Running, cars: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    script = """
import sys
from service.server import run
from service.settings import ServiceSettings
from catalog.database.migrate import upgrade
settings = ServiceSettings(home_dir=sys.argv[1], port=0, preload_torch=False, log_format="json")
upgrade(settings.database())

def ask(url):
    import os, signal, threading, urllib.request
    def go():
        asked = urllib.request.Request(url + "/v1/jobs", headers={"X-Request-ID": "order-18"})
        urllib.request.urlopen(asked).read()
        os.kill(os.getpid(), signal.SIGTERM)
    threading.Thread(target=go).start()

run(settings, ask)
"""
    folder = str(service.settings.home_dir / "logs")
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    [line] = [line for line in lines if line["event"] == "request answered"]
    assert line["request"] == "order-18"
    assert (line["method"], line["path"], line["status"]) == ("GET", "/v1/jobs", 200)
    assert re.match(r"\d{4}-\d\d-\d\dT", line["timestamp"])
