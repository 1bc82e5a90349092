"""The table of attacks is made of its results, and several runs tell more than one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.memory import PAGE, PART, draw_curves, lines_of_page, pooled
from benchmarks.pages_of_results import replaced_part

_ROOT = Path(__file__).parents[3]


def document() -> dict[str, Any]:
    found = sorted((_ROOT / "benchmarks" / "results").glob("memory-*.json"))[-1]
    results: dict[str, Any] = json.loads(found.read_text())
    return results


def test_the_table_of_attacks_is_made_of_the_last_result() -> None:
    page = (_ROOT / PAGE).read_text()
    assert replaced_part(page, PART, lines_of_page(document())) == page


def test_runs_are_pooled_by_the_widths_of_their_intervals() -> None:
    runs = [
        {"attacks": {"likelihood": {"area": area, "interval_95": [area - half, area + half]}}}
        for area, half in ((0.52, 0.03), (0.56, 0.04))
    ]
    assert pooled(runs, "likelihood") == pytest.approx((0.54, 0.025))


def test_the_curves_are_of_the_tables_with_several_weights(tmp_path: Path) -> None:
    draw_curves(document(), tmp_path / "all.png")
    results = document()
    results["runs"] = [one for one in results["runs"] if one["table"] == "auto"]
    draw_curves(results, tmp_path / "auto.png")
    sizes = [(tmp_path / f"{name}.png").stat().st_size for name in ("all", "auto")]
    assert sizes[0] > sizes[1] > 1000
