"""Places of problems as JSON pointers."""

from __future__ import annotations

from gcvae.errors import SchemaError, UnknownColumnError
from gcvae.files.row_documents import row_to_frame, rows_to_csv
from gcvae.schema.columns import TableSchema
from tests.wordings import refuses

SCHEMA = TableSchema.from_json({"columns": [{"name": "a", "kind": "integer"}]})


def test_a_pointer_escapes_the_signs_of_a_name_that_pointers_use() -> None:
    with refuses(UnknownColumnError, "/rows/1/km~1h~0"):
        rows_to_csv([{"a": 1}, {"km/h~": 2}], SCHEMA)
    with refuses(UnknownColumnError, "/row/km~1h"):
        row_to_frame({"km/h": 2}, SCHEMA)
    with refuses(SchemaError, "/columns/0/x~1y"):
        TableSchema.from_json({"columns": [{"name": "a", "kind": "integer", "x/y": 1}]})
