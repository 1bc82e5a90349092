"""A report as a document: the decisions, the four parts, and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gcvae.evaluation.report.decisions import decisions, headline
from gcvae.evaluation.report.page import html_page
from gcvae.evaluation.report.parts import Part
from gcvae.figures.html_tables import lines_table, paragraphs

VERSION = 1
"""Of the JSON document."""
PARTS = "fidelity", "utility", "likelihood", "privacy"


@dataclass(frozen=True, repr=False)
class TableReport:
    """Whether drawn rows are good, useful and safe.

    Attributes:
        parts: By the names of `PARTS`.
        rows: How many rows of each sort were looked at.
        table_rows: How many the tables have of which these were taken.
        settings: Sample sizes and options.
        not_covered: What it does not say, a sentence each.
        are_from_model: Whether the drawn rows are the model's, and not those of a table.
    """

    parts: Mapping[str, Part]
    rows: Mapping[str, int]
    table_rows: Mapping[str, int]
    settings: Mapping[str, Any]
    seed: int
    not_covered: tuple[str, ...]
    are_from_model: bool

    def __repr__(self) -> str:
        """Returns the verdicts in a line; `to_json` says the rest."""
        said = (f"{name} {_words(self.parts[name])}" for name in PARTS)
        return f"<TableReport: {', '.join(said)}>"

    def _repr_html_(self) -> str:
        """Returns the headline, and each part in a sentence, for notebooks."""
        parts = ((name, self.parts[name]) for name in PARTS)
        lines = ((name, _words(part), part.sentence) for name, part in parts)
        return paragraphs([self.headline]) + lines_table(
            ("part", "verdict", "in a sentence"), lines
        )

    @property
    def judged(self) -> str:
        """Which rows were judged, beside which."""
        real, given = self.table_rows["real"], self.table_rows.get("synthetic")
        drawn = (
            f"{self.rows['drawn']:,} rows that the model drew"
            if self.are_from_model
            else f"a table of {given:,} rows that was given, not drawn from the model here"
        )
        n_unseen = self.rows["unseen"]
        unseen = f"{n_unseen:,} real rows" if n_unseen else "no real rows"
        return (
            f"Judged: {drawn}. Compared with a real table of {real:,} rows, and with {unseen} that"
            " the model has not seen."
        )

    @property
    def headline(self) -> str:
        """What to do with the rows and with the model, in a line."""
        return headline(self.parts, are_from_model=self.are_from_model)

    def to_json(self) -> dict[str, Any]:
        """Returns the report as a JSON document."""
        return {
            "format": "gcvae-report",
            "version": VERSION,
            "headline": self.headline,
            "decisions": [
                found.to_json()
                for found in decisions(self.parts, are_from_model=self.are_from_model)
            ],
            "judged": self.judged,
            **{name: self.parts[name].to_json() for name in PARTS},
            "not_covered": list(self.not_covered),
            "rows": dict(self.rows),
            "table_rows": dict(self.table_rows),
            "settings": dict(self.settings),
            "seed": self.seed,
        }

    def to_html(self, subject: str = "") -> str:
        """Returns the report as one page that needs nothing but itself.

        Args:
            subject: Whose report it is, for the line under its title: names of files, a date.
        """
        return html_page(self.to_json(), subject)


def _words(part: Part) -> str:
    return part.verdict.replace("_", " ")
