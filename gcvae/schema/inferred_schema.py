"""What inference makes of a table: its schema, and what its user should look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gcvae.figures.html_tables import paragraphs
from gcvae.schema.columns import TableSchema


@dataclass(frozen=True, repr=False)
class InferredSchema:
    """A complete schema and what its user should look at.

    Attributes:
        rules: Of the schema, each as a document with its formula in words, the rows that it could
            hold in, those it holds in, and the first that break it.
    """

    schema: TableSchema
    warnings: tuple[str, ...] = ()
    rules: tuple[dict[str, Any], ...] = ()

    def __repr__(self) -> str:
        """The schema in a line, and how many warnings there are."""
        return f"<InferredSchema: {self.schema!r}, warnings: {len(self.warnings)}>"

    def _repr_html_(self) -> str:
        """The schema at a glance and the warnings, for notebooks."""
        return self.schema._repr_html_() + paragraphs(f"Warning: {text}" for text in self.warnings)
