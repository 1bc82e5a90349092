"""Finds columns whose distribution changes when rows that violate a hard rule are rejected.

If a share a of n generated rows satisfies all hard rules, a value's shares among these rows and
among all rows differ by chance by about sqrt((1 - a) / (a n)), the standard error of log a.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Mask
from gcvae.evaluation.columns import is_number, measured_columns, numbers_of
from gcvae.schema.columns import Column, TableSchema

_ERRORS = 2.5
"""Minimum change of a share that is reported, in standard errors of log a. A change by chance is
larger in at most one of 100,000 columns, by the Hoeffding and Dvoretzky-Kiefer-Wolfowitz
inequalities."""
_LEAST_MOVED = 0.01
"""Minimum change of a share that is reported, even if chance causes less."""


def moved_columns(rows: pd.DataFrame, is_kept: Mask, schema: TableSchema) -> list[dict[str, Any]]:
    """Returns the columns whose distribution differs between all rows and those that are kept.

    Args:
        rows: Generated rows, with cells of their columns' dtypes.
        is_kept: True for rows that satisfy all hard rules. Shape: (n,).

    Returns:
        A JSON object for each column, the largest change first. It describes the group of cells
        whose share changes most:

        - `column`: name of the column
        - `cells`: the group: a level, "at most" a number or date, or "blank" for missing cells
        - `before`: share of all rows with a cell of the group
        - `after`: share of the kept rows with a cell of the group
    """
    share = float(is_kept.mean())
    error = math.sqrt((1.0 - share) / max(is_kept.sum(), 1))
    least = max(_ERRORS * error, _LEAST_MOVED)
    found = []
    for column in measured_columns(schema):
        cells, before, after = _most_moved(rows, is_kept, column)
        if abs(after - before) >= least:
            shares = {"before": round(before, 4), "after": round(after, 4)}
            found.append({"column": column.name, "cells": cells, **shares})
    return sorted(found, key=lambda each: -abs(each["after"] - each["before"]))


def _most_moved(rows: pd.DataFrame, is_kept: Mask, column: Column) -> tuple[str, float, float]:
    """Returns (description of a group of cells, its share of all rows, its share of kept rows) for
    the group whose share differs most: cells of one level, up to a number, or missing."""
    cells = numbers_of(rows, column) if is_number(column) else rows[column.name].astype(object)
    codes, values = pd.factorize(pd.Series(cells), sort=is_number(column))
    both = [
        np.bincount(of + 1, minlength=len(values) + 1) / len(of) for of in (codes, codes[is_kept])
    ]
    if is_number(column):
        both = [np.append(shares[0], np.cumsum(shares[1:])) for shares in both]
    at = int(np.abs(both[1] - both[0]).argmax())
    moved = "blank" if at == 0 else _cells_text(values[at - 1], column)
    return moved, float(both[0][at]), float(both[1][at])


def _cells_text(value: Any, column: Column) -> str:
    """Returns a text such as "at most 12.5", or the name of a level. Dates are given as days since
    1970-01-01."""
    if column.has_times:
        return f"at most {pd.Timestamp(np.datetime64(round(value * 86_400), 's'))}"
    return f"at most {value:.10g}" if is_number(column) else str(value)
