"""Places of problems as JSON pointers."""

from __future__ import annotations

import pytest

from gcvae.errors import SchemaError, UnknownColumnError
from gcvae.files.row_documents import row_to_frame, rows_to_csv
from gcvae.schema.columns import TableSchema

SCHEMA = TableSchema.from_json({"columns": [{"name": "a", "kind": "integer"}]})


def test_a_pointer_escapes_the_signs_of_a_name_that_pointers_use() -> None:
    with pytest.raises(UnknownColumnError) as caught:
        rows_to_csv([{"a": 1}, {"km/h~": 2}], SCHEMA)
    assert caught.value.problems[0].pointer == "/rows/1/km~1h~0"
    with pytest.raises(UnknownColumnError) as caught:
        row_to_frame({"km/h": 2}, SCHEMA)
    assert caught.value.problems[0].pointer == "/row/km~1h"
    with pytest.raises(SchemaError) as invalid:
        TableSchema.from_json({"columns": [{"name": "a", "kind": "integer", "x/y": 1}]})
    assert invalid.value.problems[0].pointer == "/columns/0/x~1y"
