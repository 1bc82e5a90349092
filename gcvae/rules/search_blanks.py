"""Finds rules on missing cells: cells that are missing together, of which one implies the other, or
of which only one has a value.
"""

from __future__ import annotations

import numpy as np

from gcvae.arrays import Mask, Numbers
from gcvae.rules.row_sample import Agreement, Candidate, RowSample
from gcvae.schema.rules import Rule, missingness

LEAST_SHARE = 0.98
"""Minimum share of the rows in which a cell is missing, of those in which a rule implies it."""
_LEAST_IMPLIED = 5  # rows in each half


def find_blanks(sample: RowSample) -> list[Candidate]:
    """Returns rules on missing cells: for a column y, the column x whose missing cells, or whose
    values, imply that y is missing; preferably x is missing, or has a value, in just these rows.

    There is no rule for y if no such column exists. Of columns that are missing together, or of
    which only one has a value, x is the one that comes first in the table.
    """
    names = [c.name for c in sample.columns if sample.training.frame[c.name].isna().any()]
    halves = [half.frame[names].isna().to_numpy() for half in sample.halves]
    shares = {is_inverse: _shares(halves, is_inverse) for is_inverse in (False, True)}
    found, same = list[Candidate](), set[int]()
    for j, name in enumerate(names):
        candidates = []
        for i, of in enumerate(names):
            for is_inverse, (forth, back, n_rows) in shares.items() if i not in same else ():
                together = min(forth[i, j], back[i, j]) >= LEAST_SHARE
                is_second = i >= j if together or is_inverse else i == j
                if is_second or forth[i, j] < LEAST_SHARE or n_rows[:, i].min() < _LEAST_IMPLIED:
                    continue
                text = missingness(of, name, is_same=together, is_inverse=is_inverse)
                there, here = halves[1][:, i] != is_inverse, halves[1][:, j]
                where = there | here if together else there
                candidate = _validated(text, here & there, here, where, 2 * len(names) ** 2)
                if candidate is not None:
                    candidates.append((together, not is_inverse, n_rows[0, i], candidate))
                if together and not is_inverse:
                    same.add(j)
        if candidates:
            found.append(max(candidates, key=lambda c: c[:3])[3])
    return found


def _shares(halves: list[Mask], is_inverse: bool) -> tuple[Numbers, Numbers, Numbers]:
    """Returns the smaller one of two halves' (shares of the missing cells of column i, or of its
    values if `is_inverse`, in whose rows column j is missing; shares of the missing cells of j in
    whose rows that of i is missing, or has a value), and numbers of these cells of i by half.

    Shape: (D, D), (D, D), (2, D).
    """
    there = [(half != is_inverse).astype(np.float64) for half in halves]
    both = [x.T @ half for x, half in zip(there, halves, strict=True)]
    n_there = np.stack([x.sum(axis=0) for x in there])
    n_here = [half.sum(axis=0) for half in halves]
    forth = [x / np.maximum(n, 1)[:, None] for x, n in zip(both, n_there, strict=True)]
    back = [x / np.maximum(n, 1) for x, n in zip(both, n_here, strict=True)]
    return np.minimum(*forth), np.minimum(*back), n_there


def _validated(text: str, kept: Mask, here: Mask, where: Mask, n_tried: int) -> Candidate | None:
    """Returns the rule as a candidate if the validation half satisfies it far beyond chance; else
    None."""
    n_rows = int(where.sum())
    found = Agreement(float(kept.sum() / max(n_rows, 1)), float(here.mean()), 1, n_rows)
    if not found.is_significant(n_tried):
        return None
    return Candidate(Rule(text, source="found"), found.nats * float(where.mean()), found.share)
