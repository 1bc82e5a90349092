"""The figures of a worker, on a port of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from typing import Any

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def told(port: int) -> dict[str, float]:
    """The sum of each figure over its labels; empty while nothing listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        return {}
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    return sums


@pytest.mark.slow
def test_a_worker_serves_its_figures_where_it_is_told_to(system: Any, monkeypatch: Any) -> None:
    port = free_port()
    monkeypatch.setenv("GCVAE_METRICS_PORT", str(port))
    worker = system.start_worker()
    first = system.wait(lambda: told(port))
    assert first["gcvae_worker_celery_starts_total"] <= 1
    system.wait(lambda: told(port)["gcvae_worker_looks_total"] > 1)
    celery = system.wait(lambda: celery_of(worker.pid))
    celery.kill()
    system.wait(lambda: told(port)["gcvae_worker_celery_starts_total"] == 2)
    assert told(port)["gcvae_worker_last_look_timestamp_seconds"] > 1.7e9
    worker.terminate()
    assert worker.wait(30) == 0
    assert told(port) == {}


def celery_of(pid: int) -> psutil.Process | None:
    """The Celery process of a worker group."""
    children = psutil.Process(pid).children()
    return next((child for child in children if "celeryd: " in " ".join(child.cmdline())), None)


def test_a_port_that_is_taken_is_named(system: Any, monkeypatch: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("GCVAE_METRICS_PORT", str(taken.getsockname()[1]))
        command = [sys.executable, "-m", "worker"]
        done = subprocess.run(command, env=system.environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "GCVAE_METRICS_PORT" in done.stderr
    assert "Traceback" not in done.stderr
