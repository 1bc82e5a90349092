"""Counts replayed cells: personal data and rare texts of the real table in synthetic rows.

First and last names are compared as pairs, because single names are common and synthetic names come
from public lists. Keys of persons and cases, such as customer numbers, count as personal data if
the model generates keys of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gcvae.cells.levels import are_numeric
from gcvae.profiling.key_columns import is_modelled_record_key
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.schema.personal import PersonalKind

_PARTS_OF_NAMES = PersonalKind.FIRST_NAME, PersonalKind.LAST_NAME


@dataclass(frozen=True)
class Replay:
    """Counts of synthetic cells that repeat personal data or a rare string of the real table.

    Attributes:
        personal: Number of synthetic cells that equal a real cell, by column of personal data; a
            pair of first and last name counts as one cell.
        rare: Number of synthetic cells whose string occurs in fewer real rows than a threshold
            (`rare_rows`), by column.
    """

    personal: dict[str, int]
    rare: dict[str, int]

    @property
    def count(self) -> int:
        """Total number of synthetic cells that repeat personal data or a rare string."""
        return sum(self.personal.values()) + sum(self.rare.values())

    @property
    def sentence(self) -> str:
        """Sentence for the report that states the counts."""
        counts = self.personal | self.rare
        found = [f"{n:,} cells of {name!r}" for name, n in counts.items() if n]
        if not found:
            return (
                "Replay: no personal data and no rare text of the real table appears in the"
                " synthetic rows."
            )
        return (
            "Replay: personal data or rare texts of the real table appear in the synthetic rows:"
            f" {', '.join(found)}."
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the counts as a JSON object."""
        return {"cells": self.count, "personal": self.personal, "rare_texts": self.rare}


def replayed(
    schema: TableSchema,
    real: pd.DataFrame,
    drawn: pd.DataFrame,
    *,
    rare_rows: int,
    with_levels: bool = False,
) -> Replay:
    """Counts synthetic cells that repeat personal data or a rare string of the real table.

    Args:
        rare_rows: A string is rare if fewer real rows contain it; with 1, no string is rare.
        with_levels: Whether the schema is that of a model. Its levels may then be generated, so
            they do not count as rare.
    """
    present = [column for column in schema if column.name in real and column.name in drawn]
    personal = {
        " and ".join(names): _n_replayed(real[names], drawn[names])
        for names in _personal_cells(present, real)
    }
    rare = {}
    for column in present:
        if column.is_made_up or column.name in personal or not _has_rare_texts(column):
            continue
        counts = real[column.name].value_counts()
        texts = set(counts.index[counts < rare_rows])
        texts -= set(column.levels or ()) if with_levels else set()
        rare[column.name] = int(drawn[column.name].isin(texts).sum())
    return Replay(personal, {name: n for name, n in rare.items() if n})


def _personal_cells(columns: Sequence[Column], real: pd.DataFrame) -> Iterator[list[str]]:
    """Yields names of columns that are compared together: first and last names in pairs."""
    of_names = [c for c in columns if c.is_made_up and c.personal in _PARTS_OF_NAMES]
    first, last = ([c.name for c in of_names if c.personal is kind] for kind in _PARTS_OF_NAMES)
    yield from (list(pair) for pair in zip(first, last, strict=False))
    yield from ([c.name] for c in columns if c.is_made_up and c not in of_names)
    yield from ([c.name] for c in columns if is_modelled_record_key(c, _texts(real[c.name])))


def _texts(cells: pd.Series) -> list[str]:
    return cells.dropna().astype(str).unique().tolist()


def _n_replayed(real: pd.DataFrame, drawn: pd.DataFrame) -> int:
    known = set(real.dropna().itertuples(index=False, name=None))
    return sum(row in known for row in drawn.dropna().itertuples(index=False, name=None))


def _has_rare_texts(column: Column) -> bool:
    """Returns whether the column is an identifier or a category with text that may be rare."""
    if column.drop or column.personal is False:
        return False
    if column.kind.outcomes is Outcomes.KEYS:
        return column.decimals != 0
    is_nominal = column.kind.outcomes is Outcomes.NOMINAL_LEVELS
    return is_nominal and not are_numeric(column.levels or ())
