"""Exact copies: synthetic rows that equal a real row in every cell."""

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
    """Counts of exact copies of real rows.

    Attributes:
        drawn: Synthetic rows that equal a real row.
        expected: Number of copies expected among `n_drawn` further real rows.
        are_real_rows: Whether a table given by the user contains the rows kept for comparison. Then
            it was made from them, and attacks give no information.
    """

    drawn: int
    n_drawn: int
    expected: int
    are_real_rows: bool

    @property
    def sentence(self) -> str:
        """The counts in a sentence."""
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
    """Counts the exact copies. The report needs unseen rows."""
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
