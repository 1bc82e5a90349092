"""Determines the steps and endings of a column: those that the user specified, else inferred
ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.errors import Problem, SchemaError
from gcvae.rules.grids import Grid
from gcvae.rules.splits import Split, step_of
from gcvae.rules.step_search import with_steps
from gcvae.schema.columns import Column, Draft


def completed_steps(
    column: Column,
    values: npt.NDArray[np.generic],
    codes: npt.NDArray[np.int64],
    draft: Draft,
    pointer: str,
    problems: list[Problem],
) -> Column:
    """Returns the column with its steps (spacings of its values) and endings (common remainders).

    If some cells do not lie on the steps that the user specified, finer steps are added until all
    do.

    Args:
        column: Column that is complete except for steps and endings.
        values: The U distinct values of the column. Shape: (U,).
        codes: Index in `values` of each of n cells, -1 for a missing one. Shape: (n,).
        draft: Properties of the column that the user specified.
        pointer: JSON pointer of these properties in the user's schema.
        problems: List to which errors in the steps and endings that the user specified are
            appended.
    """
    if "steps" not in draft and "endings" not in draft:
        return with_steps(pd.Series(values), codes, column)
    given = replace(column, steps=draft.get("steps"), endings=draft.get("endings"))
    try:
        split = Split.of(given)
    except SchemaError as error:
        key = "steps" if "steps" in draft else "endings"
        problems += [replace(p, pointer=f"{pointer}/{key}") for p in error.problems]
        return column
    if split is None or not split.has_ending:
        return given
    left = split.reduced(pd.DataFrame({column.name: values}), blanks_unknown=False)
    are_kept = left[split.part_names[-1]] == split.ending
    return given if are_kept.all() else _with_grid(given, split.grid)


def _with_grid(column: Column, grid: Grid) -> Column:
    """Returns the column with steps down to the resolution of its grid, so that every cell lies on
    them."""
    endings = [text for text in column.endings or () if text == "month end" or grid.step is None]
    steps = list(column.steps or ())
    if steps == ["1 month"] and grid.step is not None:
        steps.append("1 day")
    unit = step_of(1, grid)
    steps += [unit] if steps[-1:] != [unit] else []
    return replace(column, steps=tuple(steps), endings=tuple(endings) or None)
