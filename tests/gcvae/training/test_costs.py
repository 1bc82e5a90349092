"""Estimates: what was measured is what is used, and more work costs more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcvae.evaluation.report import fidelity, privacy
from gcvae.training import costs
from gcvae.training.costs import (
    COEFFICIENTS,
    reporting_cost,
    sampling_cost,
    scoring_cost,
    training_cost,
)
from gcvae.training.held_back import MOST_REPORT_ROWS
from gcvae.training.reporting.model_scores import DRAWS
from gcvae.training.settings import PRESETS, configure, settle

_RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"


def test_the_coefficients_are_those_that_were_measured_last() -> None:
    newest = max(_RESULTS.glob("costs-*.json"))
    assert json.loads(json.dumps(COEFFICIENTS)) == json.loads(newest.read_text())["coefficients"]


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_an_estimate_that_grows_with_the_work(preset: str) -> None:
    def training(rows: int, columns: int, **settings: object) -> float:
        settled = settle(configure(preset, settings), n_rows=rows, n_columns=columns)
        return training_cost(preset, settled, rows, columns).seconds

    assert 0 < training(1000, 5) < training(50_000, 20)
    assert training(1000, 5, max_steps=400) < training(1000, 5, max_steps=4000)
    assert sampling_cost(preset, 10_000, 5).seconds < sampling_cost(preset, 10**6, 5).seconds
    assert scoring_cost(preset, 1000, 5, 10).seconds < scoring_cost(preset, 1000, 5, 1000).seconds
    assert reporting_cost(preset, 500, 5, 50).seconds < reporting_cost(preset, 5000, 5, 500).seconds
    assert reporting_cost(preset, 500, 5, 50).seconds < reporting_cost(preset, 500, 50, 50).seconds
    assert sampling_cost(preset, 10**6, 5).memory_bytes == sampling_cost(preset, 1, 5).memory_bytes


@pytest.mark.parametrize(("preset", "measured"), [("fast", 24.8), ("default", 24.8)])
def test_a_table_of_many_levels_is_estimated_by_them_too(preset: str, measured: float) -> None:
    """CPU seconds of whole trainings of 6,000 orders of a shop, on a fast core."""
    settled = settle(configure(preset), n_rows=6000, n_columns=21)
    estimated = training_cost(preset, settled, 6000, 21, levels=2708).seconds
    without = training_cost(preset, settled, 6000, 21).seconds
    assert without < estimated < 2.2 * measured
    assert estimated > measured


def test_a_report_is_estimated_by_how_much_it_looks_at() -> None:
    looked_at = MOST_REPORT_ROWS, fidelity.MOST_ROWS, privacy.MOST_ROWS, DRAWS
    assumed = (
        costs._MOST_REPORT_ROWS, costs._MOST_COMPARED, costs._MOST_ATTACKED, costs._REPORT_DRAWS
    )  # fmt: skip
    assert assumed == looked_at


def test_an_estimate_says_how_far_to_trust_it() -> None:
    cost = sampling_cost("default", 1_000_000, 15).to_json()
    assert set(cost) == {"seconds", "memory_bytes", "accuracy"}
    assert "measured" in cost["accuracy"]


def test_a_table_larger_than_memory_is_estimated_by_a_column_of_it() -> None:
    """As it was measured: 10 million rows of 20 columns stay within 4 GiB."""
    settled = settle(configure("fast"), n_rows=10**7, n_columns=20)
    assert training_cost("fast", settled, 10**7, 20).memory_bytes < 4 << 30
    scored = [scoring_cost("fast", rows, 20, 100).memory_bytes for rows in (10_000, 10**7)]
    assert scored[0] == scored[1]
