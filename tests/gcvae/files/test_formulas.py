"""Texts that a spreadsheet would compute get a ' before them, and nothing else is touched."""

from __future__ import annotations

import csv
import io
import json

import pandas as pd
import pytest

from gcvae.files.table_stream import stream_table
from gcvae.profiling.infer import infer_schema

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("x")']
HARMLESS = ["a", "1", "a=b", "x@y.z", "-5", "+49 30", "", "'=1", "-1,5", "-12.5%", "ü"]


def _frame() -> pd.DataFrame:
    texts = (FORMULAS + HARMLESS) * 4
    n = len(texts)
    return pd.DataFrame(
        {
            "word": texts,
            "id": [f"={i}" for i in range(n)],
            "debt": [f"-€{i}.50" for i in range(1, n + 1)],
            "level": [str(-(i % 3)) for i in range(n)],
            "day": pd.date_range("2020-01-01", periods=n),
            "=name": [i / 8 - 3 for i in range(n)],
        }
    )


def _written(format: str = "csv", **options: bool) -> bytes:
    from gcvae.cells.values import parse_table

    frame = _frame()
    schema = infer_schema(frame).schema
    return b"".join(stream_table([parse_table(frame, schema)], schema, format, **options))


def _rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def test_texts_that_are_formulas_are_escaped_and_all_other_cells_are_as_before() -> None:
    before, after = _rows(_written()), _rows(_written(escape_formulas=True))
    assert [*after[0]] == [*before[0]], "names stay"
    touched = {
        (name, row[name]) for row, new in zip(before, after, strict=True) for name in row
        if row[name] != new[name]
    }  # fmt: skip
    assert {text for name, text in touched if name == "word"} == set(FORMULAS)
    assert {name for name, _ in touched} == {"word", "id"}
    for row, new in zip(before, after, strict=True):
        assert all(new[name] in (row[name], f"'{row[name]}") for name in row)


@pytest.mark.parametrize("format", ["parquet", "json", "jsonl"])
def test_other_formats_have_no_formulas(format: str) -> None:
    assert _written(format, escape_formulas=True) == _written(format)


def test_a_request_may_ask_for_it() -> None:
    from service.routes.samples import NewSampleBody

    asked = NewSampleBody.model_validate_json(json.dumps({"rows": 1, "escape_formulas": True}))
    assert asked.escape_formulas
    assert not NewSampleBody(rows=1).escape_formulas
