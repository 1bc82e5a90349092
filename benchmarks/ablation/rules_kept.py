"""The rules that hold in a table, found with all mechanisms: all variants are judged by them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.rules import _follows
from gcvae.arrays import Mask
from gcvae.cells.values import parse_table
from gcvae.rules.grids import Grid
from gcvae.rules.predictions import keeps
from gcvae.rules.splits import splits_of
from gcvae.schema.columns import TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.schema.rules import Rule

Judge = Callable[[pd.DataFrame, pd.DataFrame], tuple[Mask, Mask]]
"""(rows as text, as values) -> (the rule applies to the row, the row keeps it). (n,) twice."""

_SHAPE_SHARE = 0.01
"""Of the table's keys: a shape that so many have is one of the column's."""


def rules_of(schema: TableSchema, train: pd.DataFrame) -> dict[str, Judge]:
    """The found rules of a fitted schema, the steps that all cells keep, and the shapes of keys."""
    judges = {str(rule): _of_rule(rule, schema, train) for rule in schema.rules or ()}
    for split in splits_of(schema):
        step, rest = split.kept_by_all
        if step > 1:
            judges[f"{split.column} in steps"] = _of_steps(split.column, split.grid, step, rest)
    for column in schema:
        if column.kind.outcomes is Outcomes.KEYS:
            judges[f"{column.name} has a shape of the table's"] = _of_keys(train, column.name)
    return judges | _rules_of_orders(schema)


def _of_rule(rule: Rule, schema: TableSchema, train: pd.DataFrame) -> Judge:
    if rule.is_dependency:
        follows = _follows(train, list(rule.parents), rule.column)
        return lambda text, typed: follows(text)
    return lambda text, typed: keeps(rule, typed, schema)


def _of_steps(name: str, grid: Grid, step: int, rest: int) -> Judge:
    def judge(text: pd.DataFrame, typed: pd.DataFrame) -> tuple[Mask, Mask]:
        known = typed[name].notna().to_numpy()
        kept = known.copy()
        kept[known] = (grid.indices(typed[name][known]) - rest) % step == 0
        return known, kept

    return judge


def _shapes(cells: pd.Series[Any]) -> pd.Series[Any]:
    letters = cells.astype(str).map(lambda text: re.sub(r"[^\W\d_]", "a", text))
    return letters.map(lambda text: re.sub(r"\d", "9", text))


def _of_keys(train: pd.DataFrame, name: str) -> Judge:
    shares = _shapes(train[name]).value_counts(normalize=True)
    known = set(shares[shares >= _SHAPE_SHARE].index)

    def judge(text: pd.DataFrame, typed: pd.DataFrame) -> tuple[Mask, Mask]:
        return np.ones(len(text), dtype=bool), _shapes(text[name]).isin(known).to_numpy()

    return judge


def _rules_of_orders(schema: TableSchema) -> dict[str, Judge]:
    """What the shop's table says of its dates, which no search of sums finds."""
    if "order_no" not in schema:
        return {}

    def of_date(name: str, part: Callable[[Any], Any]) -> Judge:
        def judge(text: pd.DataFrame, typed: pd.DataFrame) -> tuple[Mask, Mask]:
            known = typed["order_date"].notna().to_numpy() & (text[name] != "").to_numpy()
            return known, known & (part(typed["order_date"].dt) == text[name]).to_numpy()

        return judge

    def year_of_key(text: pd.DataFrame, typed: pd.DataFrame) -> tuple[Mask, Mask]:
        known = typed["order_date"].notna().to_numpy()
        years = text["order_no"].astype(str).str.extract(r"-(\d{4})-")[0]
        return known, known & (typed["order_date"].dt.strftime("%Y") == years).to_numpy()

    return {
        "order_no has the year of order_date": year_of_key,
        "weekday is that of order_date": of_date("weekday", lambda dates: dates.day_name()),
        "quarter is that of order_date": of_date(
            "quarter", lambda dates: "Q" + dates.quarter.astype("Int64").astype(str)
        ),
    }


def shares_kept(
    judges: Mapping[str, Judge], text: pd.DataFrame, schema: TableSchema
) -> dict[str, float]:
    """The share of the rows that each rule speaks of that keep it."""
    typed = parse_table(text, schema)
    shares = {}
    for name, judge in judges.items():
        known, kept = judge(text, typed)
        shares[name] = float(kept[known].mean()) if known.any() else 1.0
    return shares


def share_of_broken_rows(
    judges: Mapping[str, Judge], before: pd.DataFrame, after: pd.DataFrame, schema: TableSchema
) -> float:
    """The share of filled rows that break a rule which they kept before cells were taken away."""
    typed = [parse_table(frame, schema) for frame in (before, after)]
    is_broken = np.zeros(len(before), dtype=bool)
    for judge in judges.values():
        (known, kept), (is_said, is_kept) = judge(before, typed[0]), judge(after, typed[1])
        is_broken |= known & kept & is_said & ~is_kept
    return float(is_broken.mean())
