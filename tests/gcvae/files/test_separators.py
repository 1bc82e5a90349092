"""A file keeps what stands between its cells."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest

from gcvae import infer_schema, parse_table, read_table
from gcvae.errors import SchemaError, TableError
from gcvae.files.table_reader import TableReader
from gcvae.files.table_stream import stream_table
from gcvae.files.tables import write_table
from gcvae.schema.columns import TableSchema
from tests.wordings import refuses


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_file_keeps_its_separator(separator: str, tmp_path: Path) -> None:
    prices = [f"{n % 7 + 1}{n % 9},{n % 100:02d}" for n in range(1, 61)]
    quote = '"' if separator == "," else ""
    lines = [f"{quote}{price}{quote}{separator}{i % 3}" for i, price in enumerate(prices)]
    text = "\n".join([f"price{separator}kind", *lines, ""])
    (tmp_path / "table.csv").write_text(text)
    frame = read_table(tmp_path / "table.csv")
    schema = infer_schema(frame).schema
    assert schema.separator == separator
    assert infer_schema(TableReader(tmp_path / "table.csv")).schema == schema
    assert TableSchema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    values = parse_table(frame, schema)
    assert values["price"].tolist() == [float(price.replace(",", ".")) for price in prices]
    write_table(values, tmp_path / "again.csv", schema)
    assert (tmp_path / "again.csv").read_text() == text
    blocks = [values.iloc[:40], values.iloc[40:]]
    assert b"".join(stream_table(blocks, schema, "csv")).decode() == text


def test_cells_are_quoted_for_the_separator_that_the_file_has() -> None:
    table = read_table(b'name;note\n"a;b";1,5\nc,d;2,5\n')
    schema = infer_schema(table).schema
    written = io.BytesIO()
    write_table(parse_table(table, schema), written, schema)
    assert written.getvalue() == b'name;note\n"a;b";1,5\nc,d;2,5\n'


def test_a_separator_that_is_none_is_refused() -> None:
    with refuses(SchemaError, "/separator"):
        infer_schema(pd.DataFrame({"n": ["1", "2"]}), {"separator": ":"})
    assert infer_schema(pd.DataFrame({"n": ["1", "2"]}), {"separator": ";"}).schema.separator == ";"


def test_rows_of_another_separator_are_refused_with_the_possible_ones(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a^b\n1^2\n3^4,5\n")
    with refuses(TableError, line=3):
        read_table(path)
