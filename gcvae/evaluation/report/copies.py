"""Counts exact copies: synthetic rows that equal a real row in every measured column."""

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
    """Counts of exact copies of real rows among the synthetic rows.

    Attributes:
        drawn: Number of synthetic rows that equal a real row.
        n_drawn: Number of synthetic rows.
        expected: Number of copies to expect among `n_drawn` other real rows of the same source.
        are_real_rows: Whether the judged table was given by the user and contains unseen real rows,
            so that it is not purely synthetic and the attacks give no information.
    """

    drawn: int
    n_drawn: int
    expected: int
    are_real_rows: bool

    @property
    def sentence(self) -> str:
        """Sentence for the report that states the counts."""
        return (
            f"Exact copies: {self.drawn:,} of the {self.n_drawn:,} synthetic rows are "
            "identical to a"
            f" row of the real table; about {self.expected:,} of as many other real rows would be."
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the counts as a JSON object."""
        return {
            "drawn_rows": self.n_drawn,
            "drawn_rows_that_are_real": self.drawn,
            "expected_of_real_rows": self.expected,
            "are_real_rows": self.are_real_rows,
        }


def exact_copies(rows: ReportRows) -> ExactCopies:
    """Counts the exact copies among a report's synthetic rows; `rows.unseen` must not be None."""
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
