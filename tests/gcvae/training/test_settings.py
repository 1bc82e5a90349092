"""The settings: each is described, each is checked, and the rules are those that are written."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from gcvae.errors import SettingError
from gcvae.training.settings import (
    MOST_HELD_OUT_ROWS,
    PRESETS,
    Range,
    SettledConfig,
    TrainingConfig,
    configure,
    settle,
)
from gcvae_cli.files.settings_page import field_docstrings
from tests.wordings import refuses

NAMES = [field.name for field in dataclasses.fields(TrainingConfig)]
TYPES = get_type_hints(TrainingConfig)
NUMBERS = [name for name in NAMES if {int, float} & {TYPES[name], *get_args(TYPES[name])}]
RANGES = {
    name: limits
    for name, hint in get_type_hints(TrainingConfig, include_extras=True).items()
    for limits in getattr(hint, "__metadata__", ())
    if isinstance(limits, Range)
}
MINIMA = {name: limits.least for name, limits in RANGES.items() if not limits.is_open}
MAXIMA = {name: limits.most for name, limits in RANGES.items() if limits.most is not None}
CHOICES = {name: get_args(hint) for name, hint in TYPES.items() if get_origin(hint) is Literal}
SIZES = (1, 10, 999, 3000, 30_000, 2_000_000)


def settled(
    n_rows: int, n_columns: int = 10, preset: str = "default", **given: object
) -> dict[str, Any]:
    """The settings of a table of this size that are found by rule."""
    config = settle(configure(preset, given), n_rows=n_rows, n_columns=n_columns)
    return dataclasses.asdict(config)


def n_training_rows(n_rows: int) -> float:
    return n_rows - min(0.1 * n_rows, MOST_HELD_OUT_ROWS)


def test_every_setting_is_described() -> None:
    texts = field_docstrings()
    assert list(texts) == NAMES
    assert [name for name, text in texts.items() if len(text) < 20] == []


def test_a_setting_that_may_be_open_has_a_rule_in_its_description() -> None:
    texts = field_docstrings()
    may_be_open = {name for name in NAMES if type(None) in get_args(TYPES[name])}
    assert {name for name in NAMES if "Rule: " in texts[name]} == may_be_open - {"gradient_limit"}


def test_every_rule_is_kept_where_a_setting_is_given() -> None:
    given = {"d_latent": 3, "d_hidden": 7, "batch_size": 5, "max_steps": 11, "learning_rate": 0.5}
    found = settled(5000, **given)
    assert {name: found[name] for name in given} == given


def test_a_settled_configuration_has_a_type_without_open_settings() -> None:
    types = get_type_hints(SettledConfig)
    assert [*types] == NAMES
    assert [name for name in NAMES if type(None) in get_args(types[name])] == ["gradient_limit"]
    with pytest.raises(TypeError, match="missing 14 required keyword-only arguments"):
        SettledConfig()  # type: ignore[call-arg]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("n_rows", SIZES)
def test_what_is_settled_is_within_the_limits_and_settled_for_good(
    preset: str, n_rows: int
) -> None:
    for n_columns in (1, 500):
        found = settled(n_rows, n_columns, preset)
        assert {name for name, value in found.items() if value is None} <= {"gradient_limit"}
        again = settle(configure("paper-vae", found), n_rows=7, n_columns=3)
        assert dataclasses.asdict(again) == found


# The rules, as their descriptions have them


def written_steps(text: str) -> list[tuple[float, float]]:
    """(value, number of rows from which on it holds no more), size by size; none otherwise."""
    rule = text.partition("Rule: ")[2]
    steps = re.findall(r"([\d.]+) under ([\d,]*\d)", rule)
    last = re.search(r", else ([\d.]*\d)\.$", rule)
    sizes = [(float(value), float(size.replace(",", ""))) for value, size in steps]
    return [*sizes, (float(last[1]), 1e9)] if steps and last else []


STEPS = {name: steps for name, text in field_docstrings().items() if (steps := written_steps(text))}
"""Of the rules that are one number up to some size and another from there on."""


def test_widths_rates_and_decay_have_rules_of_steps() -> None:
    assert {"d_hidden", "d_sum", "d_column", "learning_rate", "weight_decay"} <= set(STEPS)
    assert {"hidden_dropout", "column_dropout", "imagined_rows"} <= set(STEPS)


@pytest.mark.parametrize("name", STEPS)
def test_a_rule_steps_where_and_how_it_is_written(name: str) -> None:
    first = 1.0
    for value, beyond in STEPS[name]:
        for n_rows in (first, beyond - 1):
            assert settled(round(n_rows), **{name: None})[name] == value
        first = beyond


def test_tables_of_a_thousand_rows_are_trained_on_their_own_rows_alone() -> None:
    small, large = (settled(n_rows) for n_rows in (999, 1000))
    assert [small[name] for name in ("imagined_rows", "d_sum", "d_column")] == [75, 32, 16]
    assert [large[name] for name in ("imagined_rows", "d_sum", "d_column")] == [0, 64, 32]


@pytest.mark.parametrize(
    ("n_columns", "d_latent"), [(1, 2), (3, 2), (8, 4), (14, 7), (32, 16), (33, 16), (500, 16)]
)
def test_z_has_half_as_many_dimensions_as_there_are_columns(n_columns: int, d_latent: int) -> None:
    assert settled(1000, n_columns, d_latent=None)["d_latent"] == d_latent


@pytest.mark.parametrize(
    ("n_rows", "batch_size"),
    [(1, 32), (294, 32), (1600, 32), (3200, 64), (6400, 128), (8800, 128), (9200, 256),
     (99_999, 256), (100_000, 512), (2_000_000, 512)],
)  # fmt: skip
def test_a_minibatch_is_a_fiftieth_of_the_rows_within_limits(n_rows: int, batch_size: int) -> None:
    assert settled(n_rows)["batch_size"] == batch_size


@pytest.mark.parametrize("preset", ["default", "fast", "gcvae"])
@pytest.mark.parametrize("n_rows", SIZES)
def test_steps_patience_and_looks_count_passes_over_the_training_rows(
    n_rows: int, preset: str
) -> None:
    found = settled(n_rows, preset=preset)
    passes = found["max_passes"] * min(1.0, (30_000 / n_rows) ** 0.5)
    steps_per_pass = n_training_rows(n_rows) / found["batch_size"]
    assert found["max_steps"] == pytest.approx(max(400, passes * steps_per_pass), abs=passes)
    patience = 600 if preset == "gcvae" else max(100, steps_per_pass)
    assert found["patience_steps"] == pytest.approx(patience, abs=2)
    looks = found["evaluate_every_steps"]
    assert looks == pytest.approx(min(max(20, 0.5 * steps_per_pass), 200), abs=1)


def test_more_rows_never_train_for_fewer_steps_with_the_same_minibatch() -> None:
    steps = [settled(n, batch_size=256)["max_steps"] for n in (100, 1000, *SIZES[6:])]
    assert all(a <= b for a, b in itertools.pairwise(steps))


# Memory


def test_low_memory_sets_what_is_not_given() -> None:
    low = configure("default", {"memory": "low"})
    assert (low.gap_weight, low.rare_level_rows) == (1.0, 12)
    own = configure("default", {"memory": "low", "gap_weight": 0.5, "rare_level_rows": 1})
    assert (own.gap_weight, own.rare_level_rows) == (0.5, 1)
    normal = configure("default", {"memory": "normal"})
    assert dataclasses.asdict(normal) == dataclasses.asdict(PRESETS["default"].config)


# Limits


def test_every_number_has_a_range() -> None:
    assert set(NUMBERS) == set(RANGES)
    assert set(RANGES) - set(MINIMA) == {"learning_rate", "held_out_share"}


@pytest.mark.parametrize("name", sorted(MINIMA))
def test_the_least_value_is_taken_and_what_is_under_it_refused(name: str) -> None:
    least = MINIMA[name]
    assert getattr(configure("default", {name: least}), name) == least
    with refuses(SettingError, f"/{name}", names=f"at least {least}"):
        configure("default", {name: least - 1})


@pytest.mark.parametrize("name", sorted(MAXIMA))
def test_the_most_is_taken_and_what_is_above_it_refused(name: str) -> None:
    most = MAXIMA[name]
    assert getattr(configure("default", {name: most}), name) == most
    with refuses(SettingError, f"/{name}", names=f"at most {most}"):
        configure("default", {name: most + 1})


@pytest.mark.parametrize("name", sorted(set(RANGES) - set(MINIMA)))
def test_an_open_range_leaves_out_its_minimum(name: str) -> None:
    with refuses(SettingError, f"/{name}", names="above 0, at most"):
        configure("default", {name: RANGES[name].least})


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_every_choice_is_taken_and_no_other(name: str) -> None:
    for choice in CHOICES[name]:
        assert getattr(configure("paper-gcvae", {name: choice}), name) == choice
    with refuses(SettingError, f"/{name}"):
        configure("default", {name: 7 if isinstance(CHOICES[name][0], int) else "other"})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "1"])
def test_what_is_no_finite_number_is_refused_by_every_number(value: object) -> None:
    with pytest.raises(SettingError) as refused:
        configure("default", dict.fromkeys(NUMBERS, value))
    assert [problem.pointer for problem in refused.value.problems] == [f"/{n}" for n in NUMBERS]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_keeps_its_own_limits(preset: str) -> None:
    config = dataclasses.asdict(PRESETS[preset].config)
    assert dataclasses.asdict(configure(preset, config)) == config
