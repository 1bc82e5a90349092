"""The schema of a table, inferred from all its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gcvae.schema.columns import TableSchema
from gcvae.schema.inferred_schema import InferredSchema

if TYPE_CHECKING:
    from gcvae.files.table_reader import Rows


def infer_schema(
    rows: Rows, given: Mapping[str, Any] | TableSchema | None = None, *, rules: bool = True
) -> InferredSchema:
    """The schema of a table, read from all its rows; what `given` says wins.

    Args:
        rows: Cells as text (of a text file) or typed (a data frame of pandas, polars or Arrow); or
            a file, a path or a TableReader, of which memory holds a column at a time.
        given: A schema, or a document that may leave anything out.
        rules: Look for rules between columns, and count the rows that keep those which are given.

    Raises:
        SchemaError: `given` is malformed or contradicts the table, or rows break what it demands.
        TableError: The table has no rows, no columns, or nothing but constants.
    """
    from gcvae.files.source_columns import source_columns
    from gcvae.profiling.infer import complete_schema  # inference builds on the classes above

    with source_columns(rows) as source:
        return complete_schema(source, given, rules=rules)
