"""The cells of a parent for which a rule gives what is known: all of them, and no others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gcvae.cells.values import parse_table
from gcvae.rules.grids import Grid
from gcvae.rules.predictions import Prediction
from gcvae.rules.solutions import can_solve, solutions
from gcvae.schema.columns import TableSchema
from gcvae.schema.rules import Formula, Rule


def schema(*columns: tuple[str, int, float, float]) -> TableSchema:
    """Numbers of so many decimals, from and to."""
    documents = [
        {"name": name, "kind": "continuous", "decimals": decimals, "minimum": low, "maximum": high}
        for name, decimals, low, high in columns
    ]
    return TableSchema.from_json({"columns": documents})


NUMBERS = schema(("税", 2, -3, 4), ("y", 1, -50, 50), ("result", 1, -90, 90))
OTHERS = pd.DataFrame({"y": ["0.0", "-0.1", "7.3", "-12.4", "", "50.0"]})
RULES = {
    "sum": "result == 税 + y",
    "falling": "result == -税 + y + 5",
    "flat": "result == 0.01 * 税 + y",
    "steep": "result == 19 * 税 - y",
    "product": "result == 0.3 * 税 * y",
    "order": "result >= 税",
    "below": "result <= 2 * 税 + y",
    "nearly": "result ≈ 税 - y ± 0.5",
    "in steps": "result == floor(3 * 税) + round(y)",
    "with a table": "result == 税 * rate[y]",
    "flat at its ends": "result == min(max(税, y), 2) / 3",
}
TABLES = {"rate": {"0": 7, "7.3": -2.5, "50": 0.125}}


@pytest.mark.parametrize("name", RULES)
def test_solutions_are_those_of_a_search_through_all_places(name: str) -> None:
    prediction = Prediction.of(Rule(RULES[name], tables=TABLES), NUMBERS)
    column, parent = NUMBERS["result"], NUMBERS["税"]
    assert can_solve(prediction.form, "税")
    typed = parse_table(OTHERS, TableSchema((NUMBERS["y"],)))
    grid, own = Grid.of(column), Grid.of(parent)
    assert grid is not None
    assert own is not None
    places = np.arange(own.low, own.high + 1)
    generator = np.random.default_rng(0)
    said = [
        prediction.predicted(others.assign(税=own.values(places)))
        for others in (typed.iloc[np.full(len(places), row)] for row in range(len(typed)))
    ]
    # What the rule gives somewhere, and what lies beside it.
    near = [grid.indices(each.fillna(0.0))[generator.integers(0, len(places), 8)] for each in said]
    low = np.stack(near) + generator.integers(-40, 4, (len(typed), 8))
    high = low + generator.integers(0, 40, low.shape)
    firsts, lasts = solutions(prediction, parent, typed, low, high)
    n_found = 0
    for row, cells in enumerate(said):
        known = cells.notna().to_numpy()
        at = grid.indices(cells[known])
        for i in range(low.shape[1]):
            right = places[known][(low[row, i] <= at) & (at <= high[row, i])]
            if len(right):
                assert (firsts[row, i], lasts[row, i]) == (right[0], right[-1])
                n_found += 1
            else:
                assert firsts[row, i] > lasts[row, i]
    assert n_found > 10


@pytest.mark.parametrize(
    "text",
    [
        "y == abs(税)",
        "y == 税 % 3",
        "y == 税 ** 2",
        "y == 税 // 2",
        "y == rate[税]",
        "y == month(税)",
        "y == (税 > 2)",
    ],
)
def test_what_neither_rises_nor_falls_throughout_is_not_solved(text: str) -> None:
    form = Rule(text).form
    assert isinstance(form, Formula)
    assert not can_solve(form, "税")


def test_a_formula_is_solved_for_each_parent_by_itself() -> None:
    form = Rule("y == rate[a] * b + max(c, 3)").form
    assert isinstance(form, Formula)
    assert [can_solve(form, parent) for parent in form.parents] == [False, True, True]


def test_a_clock_is_solved_for_its_start_and_for_minutes_of_three_days() -> None:
    numbers = schema(("start", 0, 0, 2359), ("minutes", 0, -2000, 2000), ("end", 0, 0, 2359))
    prediction = Prediction.of(Rule("end == clock(start, minutes)"), numbers)
    known = pd.DataFrame({"start": [830.0, 2330.0, 30.0], "minutes": [90.0, 45.0, -60.0]})
    ends = np.array([[1000], [15], [2330]])
    for name in known:
        others = known.drop(columns=name)
        firsts, lasts = solutions(prediction, numbers[name], others, ends, ends)
        assert (firsts == lasts).all()
        for found in firsts.T:
            said = prediction.predicted(others.assign(**{name: found}))
            assert said.tolist() == ends[:, 0].tolist()
        assert (firsts == known[[name]].to_numpy()).any(axis=1).all()
