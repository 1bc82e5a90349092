"""Known cells that no row of a model has: every row is named at once, with what it breaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.errors import ConditionError
from tests.wordings import refuses


@pytest.fixture(scope="module")
def model() -> Synthesizer:
    random = np.random.default_rng(0)
    price, quantity = random.integers(1, 50, 300), random.integers(1, 9, 300)
    columns = {"price": price, "quantity": quantity, "city": random.choice(["Rome", "Lyon"], 300)}
    table = pd.DataFrame(columns).assign(total=price * quantity)
    rules = [
        {"rule": "total == price * quantity"},
        {"rule": "quantity < 20", "keep": "hard"},
        {"rule": "price + quantity < 60 or city == 'Rome'", "keep": "hard"},
    ]
    settings = {"max_steps": 5}
    return Synthesizer.fit(table, schema={"rules": rules}, preset="fast", settings=settings, seed=0)


def test_every_impossible_row_is_named_with_what_it_breaks(
    model: Synthesizer, tmp_path: Path
) -> None:
    rows = pd.DataFrame(
        {"price": [3] * 30, "quantity": [2] * 30, "total": [6] * 30, "city": "Rome"}
    )
    rows.loc[[4, 7], "city"] = "Oslo"
    rows.loc[[5, 27], "total"] = 7
    rows.loc[9:25, "quantity"] = 30
    rows.loc[9:25, "total"] = 90
    with refuses(ConditionError) as raised:
        model.sample(given_rows=rows, seed=1)
    for part in ("at 7", "at 27", "17 in all", "quantity < 20"):
        assert part in str(raised.value)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    with refuses(ConditionError, line=11):
        model.sample(given_rows=tmp_path / "rows.csv", seed=1)


def test_each_unknown_level_is_named_with_the_known_one_that_is_like_it(
    model: Synthesizer,
) -> None:
    rows = pd.DataFrame({"price": 3, "city": ["Rome", "Rmoe", "Oslo", "Rmoe", "Lyonn"]})
    with refuses(ConditionError, column="city") as raised:
        model.sample(given_rows=rows, seed=1)
    problems = raised.value.problems
    assert [(p.row, p.suggestion) for p in problems] == [(1, "Rome"), (2, None), (4, "Lyon")]
    assert "at 3" in problems[0].message


def test_an_unknown_level_of_a_computed_column_is_named_as_such() -> None:
    random = np.random.default_rng(0)
    points = random.integers(0, 100, 300)
    grade = np.array(["low", "fair", "good"])[np.digitize(points, [30, 60])]
    table = pd.DataFrame({"points": points, "grade": grade})
    rule = {"rule": "grade == name[bracket(points, 30, 60)]"}
    rule |= {"tables": {"name": {"0": "low", "1": "fair", "2": "good"}}}
    settings = {"max_steps": 5}
    model = Synthesizer.fit(
        table, schema={"rules": [rule]}, preset="fast", settings=settings, seed=0
    )
    rows = model.sample(500, seed=1)
    drawn = np.array(["low", "fair", "good"])[np.digitize(rows["points"], [30, 60])]
    assert (rows["grade"] == drawn).all()
    assert (model.sample(50, given={"grade": "fair"}, seed=1)["points"].between(30, 59)).all()
    with refuses(ConditionError, column="grade") as raised:
        model.sample(given_rows=pd.DataFrame({"points": [50], "grade": ["god"]}), seed=1)
    assert raised.value.problems[0].suggestion == "good"


def test_every_row_of_a_block_without_a_completion_is_named(model: Synthesizer) -> None:
    known = pd.DataFrame({"total": [6.0, 1e9, None, 1e9, 12.0]})
    with refuses(ConditionError, column="total") as raised:
        model.sample(given_rows=known, seed=1)
    [problem] = raised.value.problems
    assert problem.row == 1
    assert "at 3" in problem.message


@pytest.mark.parametrize("wanted", [1e9, -5, {"min": 1e6}, [1e8, 1e9]])
def test_a_total_beyond_the_tables_names_their_range(model: Synthesizer, wanted: Any) -> None:
    with refuses(ConditionError) as raised:
        model.sample(2, given={"total": wanted}, seed=1)
    assert "total from " in str(raised.value)


def test_a_total_within_the_tables_range_that_no_row_has_is_refused_without_one(
    model: Synthesizer,
) -> None:
    with refuses(ConditionError) as raised:
        model.sample(2, given={"total": 53}, seed=1)
    assert raised.value.problems[0].expected is None
