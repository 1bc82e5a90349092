"""When a run goes on, when its learning rate falls, and for how long: by its bounds alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from gcvae.training.progress.training_progress import Evaluation
from gcvae.training.schedule import Schedule
from gcvae.training.settings import SettledConfig, configure, settle

SETTINGS = {"max_steps": 100, "max_extension": 2.0, "patience_steps": 1000}
LONG: dict[str, object] = {"max_steps": 1000, "patience_steps": 900, "patience_from": 300}


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


def steep(step: int) -> float:
    return 0.02 * step


def flat(step: int) -> float:
    return -1.0 / step


@pytest.mark.parametrize(
    ("bound", "step", "most"),
    [
        (steep, 90, 100),  # it is decided when the steps are used up
        (steep, 100, 150),
        (steep, 140, 150),
        (steep, 150, 200),
        (steep, 200, 200),
        (flat, 100, 100),
        (lambda step: min(0.02 * step, 1.8), 160, 150),  # steep at 100, and no more at 150
    ],
)
def test_a_run_whose_bound_rises_fast_has_more_steps(
    bound: Callable[[int], float], step: int, most: int
) -> None:
    found = schedule(bound, step)
    assert found.most_steps == most
    assert found.is_at_its_best == (step >= most)
    assert found.last_step == 2 * most


@pytest.mark.parametrize(("weight", "best"), [(0.0, 200), (0.4, 200), (0.6, 100), (2.0, 100)])
def test_the_best_look_is_the_last_whose_gain_is_worth_its_gap(weight: float, best: int) -> None:
    """From step 100 on the gap grows by two nats where the held-out bound gains one."""
    looks = [
        Evaluation(at, 0.0, 0.01 * at, gap=0.002 * at + 0.02 * max(0, at - 100))
        for at in range(10, 201, 10)
    ]
    found = Schedule(config(gap_weight=weight), 200, looks, None)
    assert found.best.step == best


@pytest.mark.parametrize(("weight", "most"), [(0.0, 150), (1.0, 100)])
def test_a_run_whose_gap_rises_as_fast_has_no_more_steps(weight: float, most: int) -> None:
    looks = [Evaluation(at, 0.0, steep(at), gap=steep(at)) for at in range(10, 101, 10)]
    assert Schedule(config(gap_weight=weight), 100, looks, None).most_steps == most


@pytest.mark.parametrize("settings", [{"max_extension": 1.0}, {"max_extension": None}])
def test_nobody_gets_more_steps_than_were_asked_for(settings: dict[str, object]) -> None:
    assert schedule(steep, 100, **settings).is_at_its_best


def test_small_tables_have_no_more_steps() -> None:
    few, many = (
        settle(configure("default", {}), n_rows=n, n_columns=4).max_extension
        for n in (2_999, 3_000)
    )
    assert (few, many) == (1.0, 2.0)


@pytest.mark.parametrize(("step", "is_flat"), [(390, False), (660, False), (690, True)])
def test_a_run_whose_bound_hardly_rose_over_the_last_half_is_at_its_best(
    step: int, is_flat: bool
) -> None:
    """0.2 log2(400 / 330) is 0.056 nats, 0.2 log2(400 / 345) 0.043."""
    found = schedule(lambda at: 0.2 * math.log2(min(at, 400)), step, **LONG)
    assert found.is_at_its_best == is_flat


@pytest.mark.parametrize(
    "settings",
    [{"kl_warm_up": 0.5}, {"annealing": 0.0}, {"patience_from": 801}, {"patience_steps": 1_000}],
)
def test_no_bound_is_flat_while_z_comes_into_use_or_without_an_annealing_or_soon_or_for_the_patient(
    settings: dict[str, object],
) -> None:
    assert schedule(flat, 800, **LONG).is_at_its_best
    assert not schedule(flat, 800, **(LONG | settings)).is_at_its_best


def test_a_bound_is_flat_at_looks_alone() -> None:
    """Where no look says so, nothing is known: the last half is another one."""
    found = schedule(flat, 800, **LONG)
    assert replace(found, step=795, history=found.history[:-1]).is_at_its_best is False


def test_the_end_of_a_run_is_expected_where_its_bound_will_be_flat() -> None:
    """It rises by 0.2 nats in a doubling: by 0.05 from step 1600 on, if as 1 / step."""
    left = schedule(lambda at: 0.2 * math.log2(at), 400, **(LONG | {"max_steps": 4000})).steps_left
    assert left.soonest < 1200 + 400 < left.latest < 4000 + 4000
    slow = schedule(lambda at: 2.0 * math.log2(at), 400, **(LONG | {"max_steps": 4000})).steps_left
    assert slow.latest == 3600 + 4000


@pytest.mark.parametrize(("gain", "n_steps"), [(0.06, 800), (0.04, 200)])
def test_a_short_fall_that_brings_much_becomes_a_long_one(gain: float, n_steps: int) -> None:
    """Patience ended at step 800: the rate falls over 200 steps, or over 800."""
    looks = [Evaluation(800, 1.0, 1.0), Evaluation(860, 1.0 + gain, 1.0 + gain)]
    found = Schedule(config(max_steps=1000), 860, looks, annealing_from=800)
    assert found.annealing_steps == n_steps
    assert found.last_step == 800 + n_steps
    assert not found.is_over
    assert found.learning_rate == pytest.approx(1.0 - 60 / n_steps)
    end = Schedule(config(max_steps=1000), 800 + n_steps, looks, annealing_from=800)
    assert (end.learning_rate, end.is_over) == (0.0, True)


def test_a_gain_that_comes_late_makes_no_long_fall() -> None:
    looks = [
        Evaluation(at, 1.0 + gain, 1.0 + gain) for at, gain in ((800, 0), (860, 0.01), (920, 1))
    ]
    assert Schedule(config(max_steps=1000), 920, looks, annealing_from=800).annealing_steps == 200
