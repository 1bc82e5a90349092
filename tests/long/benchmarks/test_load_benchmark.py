"""What the load is judged by. The clients themselves are locust's, and not part of the suite."""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.load.__main__ import judge
from benchmarks.load.measures import Measures
from benchmarks.load.system import example_table
from tests.running_service import Running, running, settings_in

GOOD = {
    "Request Count": "59000", "Failure Count": "0", "Requests/s": "196.6666",
    "50%": "9", "95%": "40", "99%": "120", "Max Response Time": "310.04",
}  # fmt: skip


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    """A service whose event loop was looked at."""
    with running(settings_in(tmp_path)) as service:
        time.sleep(0.3)
        yield service


def given(**other: Any) -> argparse.Namespace:
    told = {
        "pollers": 200,
        "samplers": 10,
        "streamers": 0,
        "seconds": 300,
        "sampling_seconds": 0.0,
        "note": "",
    }
    return argparse.Namespace(**(told | {"load_average": 0.1} | other))


def calls(**of_status: str) -> list[dict[str, str]]:
    """Lines as locust writes them."""
    return [
        {"Name": "sample", **GOOD, "99%": "900"},
        {"Name": "status", **GOOD, **of_status},
        {"Name": "Aggregated", **GOOD},
    ]


def test_a_run_within_the_limits_passes() -> None:
    document = judge(given(), calls(), "running", "9.9")
    assert document["passed"]
    assert document["calls"]["status"] == {
        "requests": 59000, "errors": 0, "per_second": 196.67,
        "p50_ms": 9.0, "p95_ms": 40.0, "p99_ms": 120.0, "max_ms": 310.0,
    }  # fmt: skip
    assert set(document["calls"]) == {"sample", "status"}


@pytest.mark.parametrize(
    ("of_status", "job"),
    [
        ({"99%": "150"}, "running"),
        ({"Failure Count": "1"}, "running"),
        ({"Request Count": "0"}, "running"),
        ({}, "succeeded"),
    ],
)
def test_a_run_beyond_a_limit_fails(of_status: dict[str, str], job: str) -> None:
    assert not judge(given(), calls(**of_status), job, "9.9")["passed"]


def test_the_table_has_numbers_levels_and_blanks(tmp_path: Path) -> None:
    table = example_table(500)
    assert table["savings"].isna().any()
    assert table["education"].nunique() == 3
    assert table.equals(example_table(500))


def test_what_others_took_of_the_cores_is_what_nobody_of_the_system_took() -> None:
    lags = Counter({0.001: 90, 0.01: 8, 0.1: 2})
    before = Measures(Counter(api=1.0, jobs=5.0, machine=100.0), 50.0, Counter())
    after = Measures(Counter(api=3.0, jobs=9.0, inline=1.0, machine=120.0), 2050.0, lags)
    assert after.since(before, clients_seconds=2.5) == {
        "cpu_seconds": {
            "api": 2.0, "clients": 2.5, "inline": 1.0, "jobs": 4.0, "processes_of_others": 10.5,
        },
        "api_cpu_ms_per_look": 1.0,
        "event_loop_lag_at_most_ms": {"p50": 1.0, "p95": 10.0, "p99": 100.0},
    }  # fmt: skip


def test_the_measures_are_those_of_a_running_system(service: Running) -> None:
    before = Measures.take(service.url, os.getpid())
    service.http.get("/v1/jobs/job_any")
    after = Measures.take(service.url, os.getpid())
    assert after.n_looks == before.n_looks + 1
    assert after.cpu_seconds["machine"] >= before.cpu_seconds["machine"]
    assert after.lags.total() >= before.lags.total() > 0
