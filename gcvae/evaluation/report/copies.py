"""Exact copies: how many drawn rows are real ones, cell by cell, and whether a table holds any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gcvae.evaluation.privacy import row_keys
from gcvae.evaluation.report.intervals import difference_interval
from gcvae.evaluation.report.rows import ReportRows

_LEVEL = 0.99
_MORE_THAN_BY_CHANCE = 0.05


@dataclass(frozen=True)
class ExactCopies:
    """Rows that stand in two tables, cell by cell.

    Attributes:
        drawn: Drawn rows that are a real row, of any sort.
        expected: As many of `n_drawn` other real rows would be one.
        are_real_rows: Whether a table that was given holds rows that were kept for comparison. Then
            it was made of them, and no attack can tell what it has of rows of training.
    """

    drawn: int
    n_drawn: int
    expected: int
    are_real_rows: bool

    @property
    def sentence(self) -> str:
        """The counts, in plain words."""
        return (
            f"Exact copies: {self.drawn:,} of the {self.n_drawn:,} synthetic rows are "
            "identical to a"
            f" row of the real table; about {self.expected:,} of as many other real rows would be."
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the counts as a JSON document."""
        return {
            "drawn_rows": self.n_drawn,
            "drawn_rows_that_are_real": self.drawn,
            "expected_of_real_rows": self.expected,
            "are_real_rows": self.are_real_rows,
        }


def exact_copies(rows: ReportRows) -> ExactCopies:
    """Counts them; there are unseen rows. Those that were drawn from a model can not hold these."""
    assert rows.unseen is not None
    seen, unseen, drawn = row_keys((rows.seen, rows.unseen, rows.drawn), rows.schema)
    n = min(len(seen), len(drawn))
    found, by_chance = (np.isin(unseen, table[:n]).astype(float) for table in (drawn, seen))
    more = difference_interval(found, by_chance, _LEVEL)[0]
    return ExactCopies(
        int(np.isin(drawn, np.concatenate([seen, unseen])).sum()),
        len(drawn),
        round(float(np.isin(unseen, seen).mean()) * len(drawn)),
        not rows.are_from_model and more > _MORE_THAN_BY_CHANCE,
    )
