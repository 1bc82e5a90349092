"""Estimates grow with the work."""

from __future__ import annotations

import pytest

from gcvae.training.costs import Computation, cost, passes_of
from gcvae.training.settings import PRESETS, configure, settle


def training_seconds(preset: str, rows: int, columns: int, **settings: object) -> float:
    settled = settle(configure(preset, settings), n_rows=rows, n_columns=columns)
    return cost(Computation.TRAIN, rows, columns, passes_of(settled, rows)).seconds


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_an_estimate_that_grows_with_the_work(preset: str) -> None:
    assert 0 < training_seconds(preset, 1000, 5) < training_seconds(preset, 50_000, 20)
    few, many = (training_seconds(preset, 1000, 5, max_steps=n) for n in (400, 4000))
    assert few < many


def test_the_fast_preset_is_estimated_to_be_fast() -> None:
    assert training_seconds("fast", 20_000, 10) < training_seconds("default", 20_000, 10)


@pytest.mark.parametrize("computation", Computation)
def test_more_cells_and_passes_take_longer(computation: Computation) -> None:
    seconds = [cost(computation, rows, 5).seconds for rows in (100, 1_000)]
    assert 0 < seconds[0] < seconds[1] < cost(computation, 1_000, 50).seconds
    assert cost(computation, 1_000, 5).seconds < cost(computation, 1_000, 5, passes=20).seconds
    assert set(cost(computation, 100, 5).to_json()) == {"seconds", "memory_bytes"}


@pytest.mark.parametrize("computation", Computation)
def test_a_table_larger_than_memory_needs_that_of_a_part_of_it(computation: Computation) -> None:
    """As it was measured: 10 million rows of 20 columns stay within 4 GiB."""
    assert (
        cost(computation, 10**6, 20).memory_bytes
        == cost(computation, 10**7, 20).memory_bytes
        < 4 << 30
    )
