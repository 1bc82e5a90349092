"""The steps and endings of a column: as its user says, else as its cells have them."""

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
    """The column with its steps and endings; given ones that not all cells keep get the grid's.

    Args:
        column: Complete but for them.
        values: Its distinct ones. Shape: (U,).
        codes: Which of them each cell is, -1 for none. Shape: (n,).
        draft: What the user says.
        pointer: Of the draft in its document.
        problems: Takes what is wrong with given ones.
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
    """The column with steps that end at its grid, so that every cell has a place."""
    endings = [text for text in column.endings or () if text == "month end" or grid.step is None]
    steps = list(column.steps or ())
    if steps == ["1 month"] and grid.step is not None:
        steps.append("1 day")
    unit = step_of(1, grid)
    steps += [unit] if steps[-1:] != [unit] else []
    return replace(column, steps=tuple(steps), endings=tuple(endings) or None)
