"""Finds rules on missing cells: cells that are missing together, or of which one implies the
other.
"""

from __future__ import annotations

import numpy as np

from gcvae.rules.row_sample import Agreement, Candidate, Half, RowSample
from gcvae.schema.rules import Missingness, Rule, missingness

LEAST_SHARE = 0.98
"""Minimum share of a column's missing cells in whose rows the other column is missing too."""
_LEAST_BLANKS = 5  # in each half


def find_blanks(sample: RowSample) -> list[Candidate]:
    """Returns rules on missing cells: for a column y, the column x whose missing cells imply that y
    is missing too, preferably one that is missing in the same rows.

    There is no rule for y if no such column exists. Of columns that are missing together, x is the
    one that comes first in the table.
    """
    names = [c.name for c in sample.columns if sample.training.frame[c.name].isna().any()]
    if not names:
        return []
    halves = [half.frame[names].isna().to_numpy() for half in (sample.training, sample.validation)]
    both = [half.astype(np.float64).T @ half for half in halves]  # blanks of each pair of columns
    found, same = list[Candidate](), set[int]()
    for j, name in enumerate(names):
        candidates = []
        for i, of in enumerate(names):
            if i == j or i in same:
                continue
            together = _share(both, i, j) >= LEAST_SHARE <= _share(both, j, i)
            if together and i > j:
                continue
            follows = _share(both, i, j) >= LEAST_SHARE
            if not follows or min(matrix[i, i] for matrix in both) < _LEAST_BLANKS:
                continue
            rule = Rule(missingness(of, name, is_same=together), source="found")
            validated = _validated(rule, sample.validation, len(names) ** 2)
            if validated is not None:
                candidates.append((together, both[0][i, i], validated))
            if together:
                same.add(j)
        if candidates:
            found.append(max(candidates, key=lambda c: c[:2])[2])
    return found


def _share(both: list[np.ndarray], i: int, j: int) -> float:
    """Returns the share of the missing cells of column i in whose rows column j is missing too; the
    smaller one of the two halves."""
    return float(min(matrix[i, j] / max(matrix[i, i], 1.0) for matrix in both))


def _validated(rule: Rule, half: Half, n_tried: int) -> Candidate | None:
    """Returns the rule as a candidate if the validation half satisfies it far beyond chance; else
    None."""
    here, there = (half.frame[name].isna().to_numpy() for name in rule.columns)
    assert isinstance(rule.form, Missingness), "made above"
    where = there | here if rule.form.is_same else there
    found = Agreement(float((here & there).sum() / where.sum()), float(here.mean()), 1, where.sum())
    if not found.is_significant(n_tried):
        return None
    return Candidate(rule, found.nats * float(where.mean()), found.share)
