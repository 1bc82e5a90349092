"""Result of schema inference: the schema, and warnings for the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gcvae.figures.html_tables import paragraphs
from gcvae.schema.columns import TableSchema


@dataclass(frozen=True, repr=False)
class InferredSchema:
    """Result of schema inference: a complete schema, warnings for the user, and statistics of
    rules.

    Attributes:
        warnings: Remarks on the table's data quality, as sentences.
        rules: One JSON object for each rule of the schema: its formula in words, the number of rows
            to which it applies, the number that satisfy it, and the first rows that violate it.
    """

    schema: TableSchema
    warnings: tuple[str, ...] = ()
    rules: tuple[dict[str, Any], ...] = ()

    def __repr__(self) -> str:
        """Returns a summary of the schema and the number of warnings."""
        return f"<InferredSchema: {self.schema!r}, warnings: {len(self.warnings)}>"

    def _repr_html_(self) -> str:
        """Returns a summary of the schema and the warnings as HTML, for notebooks."""
        return self.schema._repr_html_() + paragraphs(f"Warning: {text}" for text in self.warnings)
