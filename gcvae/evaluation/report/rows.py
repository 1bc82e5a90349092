"""The rows that a report compares: members, reference, unseen and drawn ones.

members     rows whose gradients trained the model
reference   rows that decided when to stop: in neither class of an attack, they train its references
unseen      rows that had no part in anything
drawn       rows of the model, or the table that is judged
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from gcvae.schema.columns import TableSchema


@dataclass(frozen=True)
class KeptRule:
    """How many rows keep a rule of the model.

    Attributes:
        real: The share of the rows that training knew.
        drawn: The share of the drawn rows.
        n_drawn: Drawn rows that the rule speaks of.
        n_table: All drawn rows.
    """

    formula: str
    real: float
    drawn: float
    n_drawn: int
    n_table: int

    @property
    def n_broken(self) -> int:
        """Drawn rows that break it."""
        return round((1.0 - self.drawn) * self.n_drawn)


@dataclass(frozen=True)
class ReportRows:
    """The tables of a report, typed, in an order that has no meaning.

    Attributes:
        unseen: None where there are no rows that training did not see.
        is_training_table: Whether the real table is the one that the model was trained on, row by
            row, so that members are known.
        are_from_model: Whether the drawn rows are the model's, and not those of a table.
        rules_kept: Share of rows that keep each rule,  of each rule of the model that speaks of
            drawn rows.
        rare_rows: A text that fewer real rows have is rare, and stands in no drawn row.
        has_model_schema: Whether the schema is a model's, with the levels that it kept.
        moved: The columns that the model's constraints move, as `moved_columns` gives them.
        table_rows: How many rows the tables have of which these were taken.
        is_minimal: Whether the model's file was minimal: nothing in it tells its training table.
    """

    schema: TableSchema
    members: pd.DataFrame
    reference: pd.DataFrame
    unseen: pd.DataFrame | None
    drawn: pd.DataFrame
    is_training_table: bool
    are_from_model: bool
    rules_kept: tuple[KeptRule, ...] = ()
    table_rows: Mapping[str, int] = field(default_factory=dict)
    is_minimal: bool = False
    moved: Sequence[Mapping[str, Any]] = ()
    rare_rows: int = 1
    has_model_schema: bool = False

    @property
    def why_unknown(self) -> str:
        """Why members are not known, where the real table is not the one of the training."""
        if self.is_minimal:
            return (
                "Whether the real table is the one that the model was trained on is not "
                "known, because"
                " the model is a minimal file"
            )
        return "The real table is not, row by row, the one that the model was trained on"

    def counts(self) -> dict[str, int]:
        """Returns the number of rows of each sort."""
        return {
            "members": len(self.members),
            "reference": len(self.reference),
            "unseen": 0 if self.unseen is None else len(self.unseen),
            "drawn": len(self.drawn),
        }

    @property
    def seen(self) -> pd.DataFrame:
        """Members and reference rows: what a table is learned from."""
        return pd.concat([self.members, self.reference], ignore_index=True)
