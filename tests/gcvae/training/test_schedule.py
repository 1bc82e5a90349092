"""How long a run holds its learning rate, and how long the rate then falls: by its bounds alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from gcvae.training.schedule import Evaluation, Schedule
from gcvae.training.settings import SettledConfig, configure, settle

SETTINGS = {
    "max_steps": 1000, "patience_steps": 100, "patience_from": 300, "min_improvement": 0.05,
    "annealing": 0.5,
}  # fmt: skip


def config(**settings: object) -> SettledConfig:
    return settle(configure("default", {**SETTINGS, **settings}), n_rows=5_000, n_columns=4)


def schedule(
    bound: Callable[[int], float],
    step: int,
    annealing_from: int | None = None,
    **settings: object,
) -> Schedule:
    """A run that looked at such bounds in every tenth step."""
    looks = [Evaluation(at, bound(at), bound(at)) for at in range(10, step + 1, 10)]
    return Schedule(config(**settings), step, looks, annealing_from)


def rising_until(end: int) -> Callable[[int], float]:
    """By 0.1 nats in each ten steps until the end, and no more after it."""
    return lambda step: 0.01 * min(step, end)


@pytest.mark.parametrize(
    ("end", "held"),
    [(500, 600), (250, 350), (100, 300), (2000, 1000)],  # patience, its start, the last step
)
def test_the_rate_is_held_until_patience_or_the_steps_are_used_up(end: int, held: int) -> None:
    assert not schedule(rising_until(end), held - 1).is_over
    found = schedule(rising_until(end), held)
    assert found.is_over
    assert found.planned_annealing_start == held


@pytest.mark.parametrize(("least", "held"), [(0.0, 900), (0.05, 500)])
def test_a_bound_that_creeps_up_has_not_improved(least: float, held: int) -> None:
    """By 0.1 in ten steps until 400; then by 0.01 in a hundred steps, until 800."""
    found = schedule(
        lambda step: 0.01 * min(step, 400) + 1e-4 * min(max(step - 400, 0), 400),
        900,
        min_improvement=least,
    )
    assert found.planned_annealing_start == held


def test_small_improvements_add_up() -> None:
    """By 0.02 nats a look: every third look is an improvement, the last one at step 880."""
    assert schedule(lambda step: 0.002 * step, 900).planned_annealing_start == 980


def test_patience_begins_with_the_full_weight_of_the_divergence() -> None:
    assert schedule(rising_until(100), 500, kl_warm_up=0.6).planned_annealing_start == 700


@pytest.mark.parametrize(("weight", "best"), [(0.0, 200), (0.4, 200), (0.6, 100), (2.0, 100)])
def test_the_best_look_is_the_last_whose_gain_is_worth_its_gap(weight: float, best: int) -> None:
    """From step 100 on the gap grows by two nats where the held-out bound gains one."""
    looks = [
        Evaluation(at, 0.0, 0.01 * at, gap=0.002 * at + 0.02 * max(0, at - 100))
        for at in range(10, 201, 10)
    ]
    found = Schedule(config(gap_weight=weight, patience_from=0), 200, looks, None)
    assert found.best.step == best
    assert found.planned_annealing_start == best + 100


@pytest.mark.parametrize(("share", "n_steps"), [(0.25, 200), (1.0, 800), (0.0, 0)])
def test_the_rate_falls_over_a_share_of_the_steps_until_then(share: float, n_steps: int) -> None:
    """A fall that brings nothing is as long as one that brings much."""
    for end in (500, 2000):
        last = schedule(rising_until(end), 800 + n_steps, 800, annealing=share, max_steps=800)
        assert last.last_step == 800 + n_steps
        assert last.is_over
    if n_steps:
        middle = schedule(
            rising_until(500), 800 + n_steps // 2, 800, annealing=share, max_steps=800
        )
        assert not middle.is_over
        assert (middle.learning_rate, last.learning_rate) == (0.5, 0.0)
        assert middle.evaluation_interval <= n_steps // 6


def test_where_patience_ended_the_hold_the_fall_is_two_fifths_as_long() -> None:
    assert schedule(rising_until(400), 500, 500, annealing=1.0).last_step == 700
    assert schedule(rising_until(2000), 1000, 1000, annealing=1.0).last_step == 2000


def test_the_end_is_expected_between_the_soonest_and_the_latest() -> None:
    left = schedule(rising_until(400), 400).steps_left
    assert 500 * 1.2 - 400 < left < 1000 * 1.5 - 400
    assert left == pytest.approx(math.sqrt(200 * 1100))
    assert schedule(rising_until(400), 550, 500).steps_left == 50
    assert schedule(rising_until(400), 600, 500).steps_left == 0
