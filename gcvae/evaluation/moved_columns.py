"""Columns whose shares move when rows that break a hard rule are rejected.

With n rows of which a share a is kept, the empirical shares of all rows and of the kept ones differ
by sampling error of the order sqrt((1 - a) / (a n)), the standard error of log a.
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
"""Standard errors of log a that chance exceeds in one of 100,000 columns at most, by Hoeffding's
inequality and that of Dvoretzky, Kiefer and Wolfowitz."""
_LEAST_MOVED = 0.01
"""A smaller change is not reported, however many rows were drawn."""


def moved_columns(rows: pd.DataFrame, is_kept: Mask, schema: TableSchema) -> list[dict[str, Any]]:
    """Returns the columns that the kept rows have otherwise than all rows, the most moved first.

    Args:
        rows: Typed rows of a model.
        is_kept: Which of them keep all hard rules. Shape: (n,).
        schema: Schema of the rows.

    Returns:
        Of each column the cells whose share moved most (`cells`: a level, numbers or dates up to
        one, or blank cells), and their share of all rows (`before`) and of the kept ones (`after`).
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
    """Returns the cells whose share moved most, their share of all rows, and of the kept ones."""
    cells = numbers_of(rows, column) if is_number(column) else rows[column.name].astype(object)
    codes, values = pd.factorize(pd.Series(cells), sort=is_number(column))
    both = [
        np.bincount(of + 1, minlength=len(values) + 1) / len(of) for of in (codes, codes[is_kept])
    ]
    if is_number(column):
        both = [np.append(shares[0], np.cumsum(shares[1:])) for shares in both]
    at = int(np.abs(both[1] - both[0]).argmax())
    moved = "blank" if at == 0 else _written(values[at - 1], column)
    return moved, float(both[0][at]), float(both[1][at])


def _written(value: Any, column: Column) -> str:
    """Returns a level, or the numbers or dates up to one; dates are days since 1970."""
    if column.has_times:
        return f"at most {pd.Timestamp(0) + pd.Timedelta(value, 'D').round('s')}"
    return f"at most {value:.10g}" if is_number(column) else str(value)
