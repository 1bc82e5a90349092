"""Tables as files: read as written, written as read, refused with the line that is wrong."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.cells.values import format_table, parse_table
from gcvae.errors import TableError, UnknownColumnError
from gcvae.files.delimited import write_delimited
from gcvae.files.tables import read_table, write_table
from gcvae.files.text_encodings import UnzippedFile
from gcvae.files.text_tables import text_rows
from gcvae.profiling.infer import infer_schema
from gcvae.schema.columns import TableSchema
from tests.gcvae.frames import KINDS, columns, frame_of
from tests.lengths import first_of, tries
from tests.wordings import refuses, same_wording

TABLES = (
    "auto_mpg_with_missing", "adult_test", "adult_train", "auto_mpg", "magic", "shoppers", "spect",
    "spect_test", "spect_train",
)  # fmt: skip
GZIPPED = gzip.compress(b"a,b\n1,2\n", mtime=0)


def cells(data: bytes) -> list[list[str]]:
    frame = read_table(data)
    return [list(frame.columns), *frame.to_numpy().tolist()]


def problem(data: bytes) -> str:
    with pytest.raises(TableError) as caught:
        read_table(data)
    return str(caught.value)


def schema_of(text: str) -> TableSchema:
    return infer_schema(read_table(text.encode())).schema


def parsed(text: str) -> tuple[pd.DataFrame, TableSchema]:
    frame = read_table(text.encode())
    schema = infer_schema(frame).schema
    return parse_table(frame, schema), schema


def written(frame: pd.DataFrame, schema: TableSchema, format: str = "csv") -> bytes:
    file = io.BytesIO()
    write_table(frame, file, schema, format)
    return file.getvalue()


# Laws


@pytest.mark.parametrize("name", first_of(*TABLES))
def test_a_real_table_is_written_as_it_was_to_the_byte(name: str, data_dir: Path) -> None:
    path = data_dir / f"{name}.csv"
    frame = read_table(path)
    schema = infer_schema(frame).schema
    assert written(parse_table(frame, schema), schema) == path.read_bytes()


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"integers", "large integers"}))
@tries(20)
@given(data=st.data())
def test_cells_of_every_kind_are_written_as_they_were(kind: str, data: st.DataObject) -> None:
    frame = frame_of(data.draw(columns(kind)))
    schema = infer_schema(frame).schema
    formatted = format_table(parse_table(frame, schema), schema)
    column = schema["column"]
    if len(column.missing.markers) <= 1:
        pd.testing.assert_frame_equal(formatted, frame)


@pytest.mark.parametrize("kind", KINDS)
@tries(20)
@given(data=st.data())
def test_values_are_the_same_when_written_and_read_again(kind: str, data: st.DataObject) -> None:
    frame = frame_of(data.draw(columns(kind)))
    schema = infer_schema(frame).schema
    values = parse_table(frame, schema)
    again = parse_table(read_table(written(values, schema)), schema)
    pd.testing.assert_frame_equal(again, values, check_exact=True)


@tries(50)
@given(st.lists(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r")),
                         min_size=2, max_size=2), min_size=1))  # fmt: skip
def test_any_text_stands_in_a_cell(rows: list[list[str]]) -> None:
    frame = pd.DataFrame(rows, columns=["a", "b"])
    assert read_table(b"".join(write_delimited(frame))).equals(frame)


def test_a_table_is_written_in_parts_as_in_one() -> None:
    text = "n,d,s\n" + "".join(
        f"{i / 8},2024-01-{i % 28 + 1:02d},{'ab'[i % 2]}\n" for i in range(50)
    )
    frame, schema = parsed(text)
    parts = [
        b"".join(write_delimited(format_table(frame.iloc[i : i + 7], schema), header=i == 0))
        for i in range(0, len(frame), 7)
    ]
    assert b"".join(parts) == written(frame, schema)


# Reading


def test_cells_are_what_is_written() -> None:
    assert cells(b'a,b\n"",NA\n 1 ,"x, ""y"""\n') == [["a", "b"], ["", "NA"], [" 1 ", 'x, "y"']]


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\n1,2\n",
        b"a,b\n1,2",
        b"\xef\xbb\xbfa,b\r\n1,2\r\n",
        b"a,b\r1,2\r",
        b"a;b\n1;2\n",
        b"a\tb\n1\t2\n",
        b"a|b\n1|2\n",
        b"\n\na,b\n\n1,2\n\n",
        GZIPPED,
    ],
)
def test_dialects_are_told_apart(data: bytes) -> None:
    assert cells(data) == [["a", "b"], ["1", "2"]]


class Counted(io.BytesIO):
    """Counts what is read."""

    n_read = 0

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(size)
        self.n_read += len(piece)
        return piece


def test_a_gzip_file_is_read_no_further_than_it_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "binary" in problem(gzip.compress(bytes(8 << 20)))
    monkeypatch.setattr("gcvae.files.table_reader.MOST_UNZIPPED_BYTES", 3 << 20)
    assert len(read_table(gzip.compress(b"a,b\n" + b"1,2\n" * (1 << 19)))) == 1 << 19
    assert "unpack it" in problem(gzip.compress(b"a,b\n" + b"1,2\n" * (1 << 20)))
    noise = Counted(gzip.compress(np.random.default_rng(0).bytes(8 << 20)))
    with refuses(TableError):
        next(text_rows(UnzippedFile(noise), window_bytes=1 << 20))
    assert noise.n_read < 2 << 20


def test_the_separator_is_the_one_under_which_rows_agree() -> None:
    assert cells(b"name;price\nx, y;1,5\nz;2,5\n")[1] == ["x, y", "1,5"]


def test_quotes_within_a_cell_and_spaces_behind_one_are_its_own() -> None:
    data = b'a,b\n5" pipe,"x" \n"say ""yes"" ""","y"\n'
    assert cells(data) == [["a", "b"], ['5" pipe', "x "], ['say "yes" "', "y"]]


def test_an_empty_cell_of_a_single_column_is_a_row() -> None:
    frame, schema = parsed('a\n""\nx\ny\n')
    assert written(frame, schema) == b'a\n""\nx\ny\n'


def test_rows_keep_their_physical_lines() -> None:
    frame = read_table(b'a,b\n1,"x\n\ny"\n\n2,z\n3,z\n')
    assert [frame.attrs["lines"][label] for label in frame.index] == [2, 6, 7]
    assert frame[1:].attrs["lines"][2] == 7


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\n1,2\n3\n",
        b'a,b\n"x\ny",2\n1,2,3\n',
        b"a,b\n1\n2\n",
        b'a,b\n1,2\n2,"x\n3,4\n',
        b'a,b\n1,2\n"x"y,2\n3,4\n',
        b'a,b\n"1\n2",2\n3,"x""y" z\n',
        b'a,b\n1,2\n""y,2\n',
        b'a|b\n1|2\n2|"a,b"c\n',
        b'"a"z,b\n1,2\n',
        b"a,a\n1,2\n",
        b",\n1,2\n",
        b"a,b\n1,2\n3,x\ry\n",
        b"sep=#\na#b\n1#2\n",
        b"sep=;\n",
        b"sep=;\na;b\n1;2;3\n",
        b"sep=;\na;a\n1;2\n",
        b"sep=;\na;\xe9\n1;2\n",
        b'a,"b""c",' + b"x" * 140_000 + b"\n1,2,3\n",
        b'a,"' + b"x" * 140_000 + b"\n1,2\n",
        b"a,b\n",
        b"",
        b"a,b\n1,\0\n",
        b"PK\x03\x04rest",
        b"PAR1rest",
        b"a,b\n1,caf\xe9\n",
        b"caf\xe9,b\n1,2\n",
        "a,b\n1,2\n".encode("utf-16"),
        GZIPPED[:-20],
        GZIPPED[:12] + b"garbage and more of it",
        b'{"a": 1}',
        b"<!DOCTYPE html><html>",
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_with_its_place(data: bytes) -> None:
    same_wording(problem(data))


def test_a_file_that_is_not_there_is_named() -> None:
    with refuses(TableError):
        read_table("nowhere.csv")


# Parsing and writing


def test_values_have_the_dtypes_of_their_kinds() -> None:
    rows = "".join(
        f"{i},{i / 4},{i if i != 3 else 'NA'},yes,2024-01-{i + 1:02d},{'ab'[i % 2]},{i % 3}\n"
        for i in range(25)
    )
    frame, _ = parsed("i,f,m,b,d,s,o\n" + rows.replace("yes", "no", 1))
    assert frame.dtypes.astype(str).tolist() == [
        "int64", "float64", "Int64", "bool", "datetime64[us]", "object", "int64",
    ]  # fmt: skip


def test_missing_cells_are_written_as_the_most_frequent_marker() -> None:
    frame, schema = parsed("a,b\n1,x\n?,y\n?,x\nNA,y\n2,x\n")
    assert format_table(frame, schema)["a"].tolist() == ["1", "?", "?", "?", "2"]


@pytest.mark.parametrize(
    "numbers",
    [
        ["1.50", "2.25", "3.00"],
        ["1.0", "2.25", "1e-05", "1e+16"],
        ["1.000000000000000000e+00", "2.500000000000000052e-03"],
        ["0.10000000000000001", "0.5"],
        ["12345678901234567", "2"],
        ["0.1234567890123456", "1e-300"],
        ["123456.789012346", "0.333333333333333", "1e-05"],  # R
        ["9.83E-05", "7.50E-05", "0.123", "0"],  # spreadsheets
        ["1.5E+10", "2.2E-05"],
        ["18.0", "19.0"],
    ],
)
def test_numbers_are_written_as_they_were_spelled(numbers: list[str]) -> None:
    text = "n,s\n" + "".join(f"{n},{'ab'[i % 2]}\n" for i, n in enumerate(numbers))
    frame, schema = parsed(text)
    assert written(frame, schema) == text.encode()


@pytest.mark.parametrize(
    "numbers", [["+1", "-2", "3", "+0"], ["+1.5", "-2"], ["+43664123456", "7"]]
)
def test_a_number_may_have_a_plus(numbers: list[str]) -> None:
    text = "a,b\n" + "".join(f"{number},x\n" for number in numbers)
    values = parse_table(read_table(text.encode()), schema_of(text))["a"]
    assert values.tolist() == [float(number) for number in numbers]


def test_an_unlisted_level_stays_what_it_is() -> None:
    schema = schema_of("n,s,b\n" + 2 * "1,x,yes\n2,y,no\n")
    frame = parse_table(read_table(b"n,s,b\n3,z,maybe\nten,x,yes\n"), schema)
    assert frame.to_numpy().tolist() == [[3, "z", "maybe"], ["ten", "x", True]]


def test_a_usual_marker_is_missing_also_where_training_had_none() -> None:
    schema = schema_of("n,s\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(30)))
    frame = parse_table(read_table(b"n,s\n,NA\n?,b\n"), schema)
    assert frame.isna().to_numpy().tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize(
    "text",
    [
        "n,d\nabc,2024-01-01\n",
        "n,d\n1.5,2024-01-01\n",
        "n,d\n1,2024-13-01\n",
        "n\n1\n",
    ],
)  # fmt: skip
def test_a_cell_that_is_not_of_its_kind_is_named(text: str) -> None:
    schema = schema_of("n,d\n" + "".join(f"{i},2024-01-{i + 1:02d}\n" for i in range(25)))
    with refuses(TableError):
        parse_table(read_table(text.encode()), schema)


def test_a_column_that_the_schema_has_not_is_named() -> None:
    schema = schema_of("n,s\n1,x\n2,y\n")
    with refuses(UnknownColumnError, column="z"):
        parse_table(read_table(b"n,s,z\n1,x,1\n"), schema)


def test_another_table_is_told_to_be_one_in_a_line() -> None:
    schema = schema_of("n,s\n1,x\n2,y\n")
    with refuses(UnknownColumnError):
        parse_table(read_table(b"town,street,house\nRome,Via,1\n"), schema)


@pytest.mark.parametrize("format", ["csv", "csv.gz", "parquet"])
def test_a_file_of_every_format_is_read_back(format: str, tmp_path: Path) -> None:
    frame, schema = parsed("a,b,c,d\n" + "".join(
        f"{'?' if i == 4 else i},{i / 3},{'xy'[i % 2]},2024-01-{i + 1:02d}\n" for i in range(25)
    ))  # fmt: skip
    path = tmp_path / f"table.{format}"
    write_table(frame, path, schema)
    pd.testing.assert_frame_equal(parse_table(read_table(path), schema), frame, check_exact=True)


def test_equal_tables_are_equal_gzip_files() -> None:
    frame, schema = parsed("a,b\n1,x\n2,y\n")
    assert written(frame, schema, "csv.gz") == written(frame, schema, "csv.gz")


def test_an_unknown_format_is_named() -> None:
    frame, schema = parsed("a,b\n1,x\n2,y\n")
    with refuses(TableError):
        written(frame, schema, "xlsx")


def test_parquet_keeps_whole_numbers_beside_nulls(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    typed = pd.DataFrame(
        {"n": pd.array([1, None, 2**60 + 1], dtype="Int64"), "b": [True, None, False]}
    )
    typed.to_parquet(path)
    frame = read_table(path)
    assert frame["n"].tolist() == [1, pd.NA, 2**60 + 1]
    assert frame["b"].dtype == "boolean"


def test_lists_in_parquet_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"n": [np.array([1, 2])]}).to_parquet(path)
    with refuses(TableError, column="n"):
        read_table(path)


@pytest.mark.parametrize(
    "cells",
    [
        [str(2**62 + 2**40 * i) for i in range(-20, 20)],
        ["-7e+74", "-6e-20", "-5e-24", "-1e-20"],
    ],
)
def test_numbers_that_the_table_never_had_read_back_as_they_are(cells: list[str]) -> None:
    """Whole ones to the last digit, and large ones as numbers, not as names."""
    given = {"columns": [{"name": "x", "kind": "integer" if len(cells) > 9 else "continuous"}]}
    frame = pd.DataFrame({"x": cells}, dtype=object)
    schema = infer_schema(frame, given).schema
    others = pd.DataFrame({"x": [2**62 + 3, -(2**60) - 1] if len(cells) > 9 else [-5.3e73, 1e19]})
    pd.testing.assert_frame_equal(parse_table(format_table(others, schema), schema), others)
