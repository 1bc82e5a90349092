"""Replay: personal cells and rare texts of the real table that stand in drawn rows.

A first and a last name are one cell: many people share either, and drawn ones are of public lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gcvae.cells.levels import are_numeric
from gcvae.evaluation.report.rows import ReportRows
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.schema.personal import PersonalKind

_PARTS_OF_NAMES = PersonalKind.FIRST_NAME, PersonalKind.LAST_NAME


@dataclass(frozen=True)
class Replay:
    """What drawn rows hold of the real table's cells that are to stay there.

    Attributes:
        personal: Drawn cells, by personal column; of first and last names pairs of cells.
        rare: Drawn cells with a text that few real rows have, by column.
    """

    personal: dict[str, int]
    rare: dict[str, int]

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.personal.values()) + sum(self.rare.values())

    @property
    def sentence(self) -> str:
        """The counts, in plain words."""
        found = [
            f"{n:,} cells of {name!r}" for name, n in {**self.personal, **self.rare}.items() if n
        ]
        if not found:
            return (
                "Replay: no personal data and no rare text of the real table appears in "
                "the synthetic"
                " rows."
            )
        return (
            "Replay: personal data or rare texts of the real table appear in the synthetic rows:"
            f" {', '.join(found)}."
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the counts as a JSON document."""
        return {"cells": self.count, "personal": self.personal, "rare_texts": self.rare}


def replayed(
    schema: TableSchema,
    real: pd.DataFrame,
    drawn: pd.DataFrame,
    *,
    rare_rows: int,
    with_levels: bool = False,
) -> Replay:
    """Counts drawn cells that are the real table's.

    Args:
        schema: Schema of both.
        real: The rows that were learned from, typed.
        drawn: Typed.
        rare_rows: A text that fewer real rows have is rare; 1: none is.
        with_levels: The schema's levels are those that a model kept, as its user has said: none of
            them is rare.
    """
    present = [column for column in schema if column.name in real and column.name in drawn]
    personal = {
        " and ".join(names): _n_replayed(real[names], drawn[names])
        for names in _personal_cells(present)
    }
    rare = {}
    for column in present:
        if column.is_made_up or not _has_rare_texts(column):
            continue
        counts = real[column.name].value_counts()
        texts = set(counts.index[counts < rare_rows])
        texts -= set(column.levels or ()) if with_levels else set()
        rare[column.name] = int(drawn[column.name].isin(texts).sum())
    return Replay(personal, {name: n for name, n in rare.items() if n})


def replay_of(rows: ReportRows) -> Replay:
    """Returns the replay of a report's drawn rows."""
    return replayed(
        rows.schema,
        rows.seen,
        rows.drawn,
        rare_rows=rows.rare_rows,
        with_levels=rows.has_model_schema,
    )


def _personal_cells(columns: Sequence[Column]) -> Iterator[list[str]]:
    """Yields the columns of each kind of cell: each personal one, and first and last names
    together."""
    of_names = [c for c in columns if c.is_made_up and c.personal in _PARTS_OF_NAMES]
    first, last = ([c.name for c in of_names if c.personal is kind] for kind in _PARTS_OF_NAMES)
    yield from (list(pair) for pair in zip(first, last, strict=False))
    yield from ([c.name] for c in columns if c.is_made_up and c not in of_names)


def _n_replayed(real: pd.DataFrame, drawn: pd.DataFrame) -> int:
    """How many drawn rows of these columns are a real one."""
    known = set(real.dropna().itertuples(index=False, name=None))
    return sum(row in known for row in drawn.dropna().itertuples(index=False, name=None))


def _has_rare_texts(column: Column) -> bool:
    """Returns whether the column is of words, whose rare ones a model withholds, or of texts as
    keys."""
    if column.drop or column.personal is False:
        return False
    if column.kind.outcomes is Outcomes.KEYS:
        return column.decimals != 0
    is_nominal = column.kind.outcomes is Outcomes.NOMINAL_LEVELS
    return is_nominal and not are_numeric(column.levels or ())
