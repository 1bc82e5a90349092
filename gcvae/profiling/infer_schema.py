"""Infers the schema of a table from all its rows."""

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
    """Infers the schema of a table from all its rows; what the user specified in `given` is kept.

    Args:
        rows: Data frame of pandas, polars or Arrow; or a file, a path or a TableReader, which is
            read one column at a time.
        given: Schema, or JSON document of one, which may be incomplete; if None, everything is
            inferred.
        rules: Whether to infer rules between columns, and to count the rows that satisfy the rules
            in `given`.

    Raises:
        SchemaError: `given` is malformed or contradicts the table, or rows violate hard rules.
        TableError: The table has no rows, no columns, or only constants.
    """
    from gcvae.files.source_columns import source_columns
    from gcvae.profiling.infer import complete_schema  # inference builds on the classes above

    with source_columns(rows) as source:
        return complete_schema(source, given, rules=rules)
