"""The cells of a parent for which a rule gives what is known: all of them, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae.cells.values import parse_table
from gcvae.rules.grids import Grid
from gcvae.rules.predictions import predicted
from gcvae.rules.solutions import solutions
from gcvae.schema.columns import TableSchema
from gcvae.schema.rule_documents import read_rules


def schema(*columns: tuple[str, int, float, float]) -> TableSchema:
    """Numbers of so many decimals, from and to."""
    documents = [
        {"name": name, "kind": "continuous", "decimals": decimals, "minimum": low, "maximum": high}
        for name, decimals, low, high in columns
    ]
    return TableSchema.from_json({"columns": documents})


NUMBERS = schema(("税", 2, -3, 4), ("y", 1, -50, 50), ("result", 1, -90, 90))
OTHERS = pd.DataFrame({"y": ["0.0", "-0.1", "7.3", "-12.4", "", "50.0"]})
RULES: dict[str, dict[str, Any]] = {
    "sum": {"kind": "sum", "column": "result", "terms": {"税": 1, "y": 1}},
    "falling": {"kind": "sum", "column": "result", "terms": {"税": -1, "y": 1}, "constant": 5},
    "flat": {"kind": "sum", "column": "result", "terms": {"税": 0.01, "y": 1}},
    "steep": {"kind": "sum", "column": "result", "terms": {"税": 19, "y": -1}, "ties": "away"},
    "product": {"kind": "product", "column": "result", "factors": ["税", "y"], "factor": 0.3},
    "order": {"kind": "order", "low": "税", "high": "result"},
}


@pytest.mark.parametrize("name", RULES)
def test_solutions_are_those_of_a_search_through_all_places(name: str) -> None:
    [rule] = read_rules([RULES[name]], [])
    column, parent = NUMBERS["result"], NUMBERS["税"]
    typed = parse_table(OTHERS, TableSchema((NUMBERS["y"],)))
    grid, own = Grid.of(column), Grid.of(parent)
    assert grid is not None
    assert own is not None
    places = np.arange(own.low, own.high + 1)
    generator = np.random.default_rng(0)
    said = [
        predicted(rule, others.assign(税=own.values(places)), column)
        for others in (typed.iloc[np.full(len(places), row)] for row in range(len(typed)))
    ]
    # What the rule gives somewhere, and what lies beside it.
    near = [grid.places(each.fillna(0.0))[generator.integers(0, len(places), 8)] for each in said]
    low = np.stack(near) + generator.integers(-40, 4, (len(typed), 8))
    high = low + generator.integers(0, 40, low.shape)
    firsts, lasts = solutions(rule, parent, column, typed, low, high)
    n_found = 0
    for row, cells in enumerate(said):
        known = cells.notna().to_numpy()
        at = grid.places(cells[known])
        for i in range(low.shape[1]):
            right = places[known][(low[row, i] <= at) & (at <= high[row, i])]
            if len(right):
                assert (firsts[row, i], lasts[row, i]) == (right[0], right[-1])
                n_found += 1
            else:
                assert firsts[row, i] > lasts[row, i]
    assert n_found > 10
