"""Steps and endings of a column: declared, else inferred from its cells."""

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
    """Returns the column with its steps and endings.

    Declared steps that not all cells satisfy are replaced by the grid's.

    Args:
        column: Complete except for these.
        values: Its distinct values. Shape: (U,).
        codes: Index of each cell's value, -1 for none. Shape: (n,).
        draft: The user's declaration.
        pointer: JSON pointer of the declaration.
        problems: Receives problems of declared steps.
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
    """Returns the column with steps that end at its grid, so that every cell is on it."""
    endings = [text for text in column.endings or () if text == "month end" or grid.step is None]
    steps = list(column.steps or ())
    if steps == ["1 month"] and grid.step is not None:
        steps.append("1 day")
    unit = step_of(1, grid)
    steps += [unit] if steps[-1:] != [unit] else []
    return replace(column, steps=tuple(steps), endings=tuple(endings) or None)
