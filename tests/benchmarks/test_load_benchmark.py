"""What the load is judged by. The clients themselves are locust's, and not part of the suite."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from benchmarks.load.__main__ import judge
from benchmarks.load.system import example_table

GOOD = {
    "Request Count": "59000", "Failure Count": "0", "Requests/s": "196.6666",
    "50%": "9", "95%": "40", "99%": "120", "Max Response Time": "310.04",
}  # fmt: skip


def given(**other: Any) -> argparse.Namespace:
    told = {"pollers": 200, "samplers": 10, "seconds": 300, "sampling_seconds": 0.0, "note": ""}
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
