"""Laws of the streamed table: the blocks do not show, and what is written reads back."""

from __future__ import annotations

import io
import json

import pandas as pd
import pytest

from gcvae.cells.values import parse_table
from gcvae.errors import TableError
from gcvae.files.table_stream import MEDIA_TYPES, stream_table
from gcvae.files.tables import read_table
from gcvae.profiling.infer import infer_schema
from tests.wordings import refuses

NOTES = ["?", '"a, b"', "c", "c", "c"]


def line(day: int) -> str:
    sex, answer = "MF"[day % 2], ["yes", "no"][day % 2]
    return f"2024-01-{day:02d},{day * 1.25:.2f},{day * 3},{sex},{answer},{NOTES[day % 5]}\n"


TEXT = ("when,amount,count,sex,answer,note\n" + "".join(map(line, range(1, 29)))).encode()


@pytest.fixture(scope="module", name="table")
def _table():
    frame = read_table(TEXT)
    schema = infer_schema(frame).schema
    return parse_table(frame, schema), schema


def blocks_of(frame: pd.DataFrame, size: int) -> list[pd.DataFrame]:
    return [frame.iloc[first : first + size] for first in range(0, len(frame), size)]


@pytest.mark.parametrize("size", [1, 5, 28])
def test_a_csv_streamed_in_blocks_is_the_file_that_was_read(table, size):
    frame, schema = table
    assert b"".join(stream_table(blocks_of(frame, size), schema, "csv")) == TEXT


@pytest.mark.parametrize("format", ["json", "jsonl"])
def test_blocks_do_not_show_in_json(table, format):
    frame, schema = table
    whole, cut = (b"".join(stream_table(blocks_of(frame, n), schema, format)) for n in (28, 3))
    assert whole == cut


def test_json_has_plain_values_dates_as_written_and_null_for_missing(table):
    frame, schema = table
    rows = json.loads(b"".join(stream_table(blocks_of(frame, 10), schema, "json")))
    assert rows[4] == {
        "when": "2024-01-05", "amount": 6.25, "count": 15, "sex": "F", "answer": False,
        "note": None,
    }  # fmt: skip


def test_parquet_reads_back_whatever_a_block_lacks(table):
    frame, schema = table
    data = b"".join(stream_table(blocks_of(frame, 1), schema, "parquet"))
    back = pd.read_parquet(io.BytesIO(data))
    assert back["note"].isna().sum() == frame["note"].isna().sum()
    pd.testing.assert_frame_equal(parse_table(back, schema), frame, check_dtype=False)


@pytest.mark.parametrize("format", MEDIA_TYPES)
def test_a_table_without_rows_is_a_whole_file(table, format):
    frame, schema = table
    data = b"".join(stream_table([frame.iloc[:0]], schema, format))
    assert data.startswith(
        {"csv": b"when,", "json": b"[]", "jsonl": b"", "parquet": b"PAR1"}[format]
    )


def test_an_unknown_format_is_refused(table):
    with refuses(TableError):
        stream_table([], table[1], "xls")
