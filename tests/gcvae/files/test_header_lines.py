"""The lines above the rows: separators that are named, names that are not there, line ends."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from gcvae import TableReader, infer_schema, read_table
from gcvae.errors import TableError
from gcvae.files.text_tables import text_rows
from tests.wordings import refuses


def small_windows(data: bytes, n_bytes: int) -> pd.DataFrame:
    """The table of a file that is read so many bytes at a time."""
    chunks = [rows.frame() for rows in text_rows(io.BytesIO(data), window_bytes=n_bytes)]
    return pd.concat(chunks, ignore_index=True)


LINES = ["sep={}\n", "sep={}\r\n", "SEP={}\n", '"sep={}"\r\n', "\ufeffsep={}\n"]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(("separator", "other"), [(",", ";"), (";", ","), ("\t", ","), ("|", ",")])
def test_a_first_line_names_the_separator_and_is_no_row(
    line: str, separator: str, other: str
) -> None:
    # Without the line the other one would be the separator: it stands in every row.
    rows = [["a{}x", "b{}y"], ["1{}2", "3{}4"], ["5{}6{}7", ""]]
    cells = [[cell.replace("{}", other) for cell in row] for row in rows]
    text = line.format(separator) + "".join(separator.join(row) + "\n" for row in cells)
    table = read_table(text.encode())
    assert [table.columns.tolist(), *table.to_numpy().tolist()] == cells
    assert table.attrs["separator"] == separator
    assert [table.attrs["lines"][row] for row in range(2)] == [3, 4]


def test_a_file_that_names_its_separator_has_the_schema_of_one_that_does_not(
    tmp_path: Path,
) -> None:
    text = "x;y\n" + "".join(f"{n % 37},5;{n % 3}\n" for n in range(90))
    (tmp_path / "named.csv").write_text("sep=;\n" + text)
    named = infer_schema(TableReader(tmp_path / "named.csv")).schema
    assert named == infer_schema(read_table(text.encode())).schema
    assert named.separator == ";"


MAC = b'a,"b\rc"\r1,"x\ny"\r"2\r3",4\r5,\r'


@pytest.mark.parametrize("n_bytes", [12, 13, 14, 15, 16, 17, 1000])
def test_carriage_returns_alone_end_lines_also_beside_quoted_line_feeds(n_bytes: int) -> None:
    table = small_windows(MAC, n_bytes)
    assert table.columns.tolist() == ["a", "b\rc"]
    assert table.to_numpy().tolist() == [["1", "x\ny"], ["2\r3", "4"], ["5", ""]]
    mixed = small_windows(MAC.replace(b"5,\r", b"5,\r\n6,7\r\n"), n_bytes)
    assert mixed.to_numpy().tolist()[2:] == [["5", ""], ["6", "7"]]


def test_a_row_of_another_width_in_such_a_file_has_its_line() -> None:
    with refuses(TableError, line=3):
        read_table(b"a,b\r1,2\r3,4,5\r")


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("a,b,c,", ["a", "b", "c", "Unnamed: 3"]),
        ("a,,c,d", ["a", "Unnamed: 1", "c", "d"]),
        (",,c,d", ["Unnamed: 0", "Unnamed: 1", "c", "d"]),
        ('a, ,"",d', ["a", "Unnamed: 1", "Unnamed: 2", "d"]),
        ("имя,,,Unnamed: 1", ["имя", "Unnamed: 1.1", "Unnamed: 2", "Unnamed: 1"]),
    ],
)
def test_every_column_without_a_name_has_the_one_of_pandas_and_a_note(
    header: str, names: list[str]
) -> None:
    text = f"{header}\n" + "".join(f"{i % 3},{i % 7},{i % 2},{i % 5}\n" for i in range(60))
    table = read_table(text.encode())
    assert table.columns.tolist() == names
    notes = [note for note in infer_schema(table).warnings if "has no name in the table" in note]
    assert [note.partition(": has")[0] for note in notes] == [
        f"column {name!r}" for name in names if name.startswith("Unnamed")
    ]


def test_a_name_of_more_than_500_characters_is_refused_with_its_place() -> None:
    table = read_table(b"a," + b"x" * 501 + b"\n1,2\n2,3\n")
    with refuses(TableError):
        infer_schema(table)
