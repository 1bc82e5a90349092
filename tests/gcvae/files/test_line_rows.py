"""Files whose rows are lines are read without a look at their quotes, and read the same."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.errors import TableError
from gcvae.files import delimited
from gcvae.files.delimited import delimited_cells
from gcvae.files.delimited_rows import DelimitedRows
from gcvae.files.line_rows import line_rows

PIECES = st.sampled_from(
    ["a", "1.5", "é", " ", ",", ",", "\n", "\n", "\r\n", "\r", '"', '""', '","', '",\n"', '"\n"']
)
ROWS = ["1,2\n", '"a","b"\n', '"a, b",2\n', '"",""\n', '"a\nb",1\n', '"say ""x""",1\n', "é,1\n"]


def read(data: bytes, window_bytes: int) -> list[Any]:
    """The cells and the lines of each chunk, and what is wrong with the next."""
    found: list[Any] = []
    try:
        for cells in delimited_cells(io.BytesIO(data), window_bytes=window_bytes):
            table = cells.table.to_pylist()
            found.append((table, [cells.lines[row] for row in range(len(table))]))
    except TableError as error:
        found.append([str(problem) for problem in error.problems])
    return found


def same_without(data: bytes, window_bytes: int) -> None:
    quick = read(data, window_bytes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "line_rows", lambda *_: None)
        assert quick == read(data, window_bytes)


@given(
    st.lists(PIECES, max_size=40).map("".join),
    st.sampled_from([b"", b"\xff", b"\0"]),
    st.integers(8, 60),
)
def test_any_text_is_read_or_refused_as_without_it(text: str, end: bytes, window: int) -> None:
    same_without(b"x,y\n" + text.encode() + end, window)


@given(st.lists(st.sampled_from(ROWS), min_size=1, max_size=30).map("".join), st.integers(8, 90))
def test_any_rows_are_read_as_without_it(rows: str, window: int) -> None:
    same_without(b"x,y\n" + rows.encode(), window)


def test_cells_longer_than_what_is_parsed_at_once_are_read_as_without_it() -> None:
    same_without(b"x,y\n1,2\n3," + b"a" * (3 << 20) + b"\n5,6\n", 1 << 24)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("row", ["1,2", '"a","b"', '"a, b",2', '"",1', "é,"])
def test_lines_are_read_by_arrow_alone(
    row: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(rows: DelimitedRows) -> None:
        raise AssertionError(f"read cell by cell: {rows.data!r}")

    monkeypatch.setattr(DelimitedRows, "cells", refuse)
    data = ending.join(["x,y", *[row] * 50]).encode()
    [(table, lines)] = read(data, 1 << 20)
    assert len(table) == 50
    assert lines == list(range(2, 52))


@pytest.mark.parametrize(
    "data",
    [
        b'1,"a\n2,b"\n',  # a cell of two lines
        b'1,"a\n',  # a quote that nothing closes
        b"1,2\n\n3,4\n",  # a blank line
        b"1,2\r3,4\n",  # two kinds of line ends
        b'1,"a"b\n',  # text behind a closing quote
        b'1,"a ""b"" c"\n',
        b"1,2,3\n",
        b"1\n",
        b"1,\xff\n",
        b"1,\0\n",
        b"\n",
    ],
)
def test_of_other_texts_nothing_is_said(data: bytes) -> None:
    assert line_rows(data, ",", ["x", "y"]) is None


def test_every_cell_is_a_string() -> None:
    table = line_rows(b'1,\n"2",NA\n', ",", ["x", "y"])
    assert table.schema.types == [pa.string(), pa.string()]
    assert table.to_pylist() == [{"x": "1", "y": ""}, {"x": "2", "y": "NA"}]
