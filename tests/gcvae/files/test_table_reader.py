"""Files read chunk by chunk: the same cells, lines and refusals as read whole, in little memory."""

from __future__ import annotations

import csv
import gzip
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae import (
    Column,
    ColumnKind,
    TableReader,
    TableSchema,
    infer_schema,
    parse_table,
    read_table,
    write_table,
)
from gcvae.errors import TableError
from gcvae.files.records import end_of_records
from gcvae.files.text_tables import text_rows
from gcvae.scoring.score_options import ScoreOptions
from tests.gcvae.conditioned_tables import fitted, table
from tests.lengths import tries
from tests.wordings import refuses


def chunks(path: Path, rows: int) -> list[pd.DataFrame]:
    return list(TableReader(path).chunks(rows))


def lines_of(frame: pd.DataFrame) -> list[int]:
    return [frame.attrs["lines"][label] for label in frame.index]


def in_windows(data: bytes, window_bytes: int) -> list[pd.DataFrame]:
    return [rows.frame() for rows in text_rows(io.BytesIO(data), window_bytes=window_bytes)]


CELLS = st.text(st.sampled_from('ab",\n;é '), max_size=5)


@tries(200)
@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=12), st.integers(40, 90)
)
def test_windows_end_where_records_end(rows: list[list[str]], window_bytes: int) -> None:
    """However quotes, separators and line ends stand in cells, and wherever windows end."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["the first column", "the second column"])
    writer.writerows(rows)
    data = text.getvalue().encode()
    whole = read_table(data)
    parts = in_windows(data, window_bytes)
    joined = pd.concat(parts, ignore_index=True)
    assert joined.to_numpy().tolist() == whole.to_numpy().tolist() == rows
    assert [line for part in parts for line in lines_of(part)] == lines_of(whole)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (b"1,2\n3,4\n5", b"1,2\n3,4\n"),
        (b"1,2", b""),
        (b'1,"2\n3', b""),
        (b'1,2\n"3\n","4\n', b"1,2\n"),
        (b'"1\n2"\n', b'"1\n2"\n'),
        (b'5" pipe,"a\nb"\n6" pipe,"c\n', b'5" pipe,"a\nb"\n'),
        (b'1,"2"', b""),
        (b'1\n"2"', b"1\n"),
        (b'1\n"2""\n3"\n4', b'1\n"2""\n3"\n'),
    ],
)
def test_a_record_ends_with_a_line_outside_of_quotes(text: bytes, whole: bytes) -> None:
    assert text[: end_of_records(text, ",")] == whole


@given(
    st.text(st.sampled_from('a,"\n\r '), max_size=20), st.sampled_from(["", '"a",b\n"c\nd",', '"'])
)
def test_where_records_end_is_the_same_by_the_pattern(text: str, start: str) -> None:
    """Quotes in turns are the quicker way."""
    data = (start + text).encode()
    end = end_of_records(data, ",")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gcvae.files.records._edge_quotes", lambda *_: None)
        assert end == end_of_records(data, ",")


PIECES = st.sampled_from(
    ["a", "1.5", "é", " ", ",", ",", "\n", "\n", "\r\n", "\r", '"', '""', '","', '",\n"', '"\n"']
)


@given(st.lists(PIECES, max_size=40).map("".join), st.integers(8, 60))
def test_any_text_is_read_or_refused_in_windows_as_whole(text: str, window_bytes: int) -> None:
    """Of several faults the windows may name an earlier one."""
    data = b"x,y\n" + text.encode()
    try:
        whole = read_table(data)
    except TableError:
        with pytest.raises(TableError):
            in_windows(data, window_bytes)
        return
    parts = in_windows(data, window_bytes)
    assert pd.concat(parts, ignore_index=True).equals(whole)
    assert [line for part in parts for line in lines_of(part)] == lines_of(whole)


@pytest.mark.parametrize("row", ["1,2", '"a","b"', '"a, b",2', '"say ""x""",1', '5" pipe,2', "é,"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_rows_that_are_lines_have_numbers_that_take_no_memory(row: str, ending: str) -> None:
    rows = next(text_rows(io.BytesIO(ending.join(["x,y", *[row] * 50]).encode())))
    assert rows.lines._starts.tolist() == list(range(2, 52))
    assert rows.table.num_rows == 50


def test_a_cell_longer_than_what_is_parsed_at_once_is_read() -> None:
    rows = read_table(b"x,y\n1,2\n3," + b"a" * (3 << 20) + b"\n5,6\n")
    assert rows["y"].str.len().tolist() == [1, 3 << 20, 1]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_every_format_comes_in_blocks(ending: str, tmp_path: Path) -> None:
    frame, schema = table(1_000), fitted("paper-gcvae").schema
    path = tmp_path / f"table{ending}"
    write_table(parse_table(frame, schema), path, schema)
    parts = chunks(path, 300)
    assert [len(part) for part in parts] == [300, 300, 300, 100]
    joined = parse_table(pd.concat(parts, ignore_index=True), schema)
    pd.testing.assert_frame_equal(joined, parse_table(read_table(path), schema))


def test_rows_behind_a_cell_that_is_too_long_are_still_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b\n" + b'"' * 2_000_001)
    with refuses(TableError, line=2):
        TableReader(path).read()


@pytest.mark.parametrize("told", [5_064, -5_000])
@pytest.mark.parametrize("places", [1, -1])
def test_a_parquet_file_has_the_rows_that_its_footer_says(
    places: int, told: int, tmp_path: Path
) -> None:
    """Its count of rows is another, in the file's own line or in those of its parts too."""
    path = tmp_path / "table.parquet"
    pd.DataFrame({"a": range(5_000)}).to_parquet(path)
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:].replace(varint(5_000), varint(told), places)
    path.write_bytes(data[:start] + footer)
    for read in (infer_schema, read_table, lambda path: chunks(path, 1_000)):
        with refuses(TableError):
            read(path)


def varint(rows: int) -> bytes:
    """A number from -8,192 to 8,191 as Thrift's compact protocol has it."""
    zigzag = 2 * rows if rows >= 0 else -2 * rows - 1
    return bytes([zigzag & 127 | 128, zigzag >> 7])


def test_progress_ends_at_one(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "1,2\n" * 1_000)
    reader = TableReader(path)
    told = [(reader.rows, round(reader.fraction, 3)) for _ in reader.chunks(400)]
    assert told == [(400, 0.4), (800, 0.8), (1_000, 1.0)]


def test_problems_name_the_lines_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b'name,age\n"a\nb",1\n' + b"c,2\n" * 4_998 + b"d,old\n")
    columns = (
        Column("name", ColumnKind.CATEGORICAL, levels=("c",)),
        Column("age", ColumnKind.INTEGER),
    )
    with refuses(TableError, line=5002, column="age"):
        parse_table(chunks(path, 4_096)[1], TableSchema(columns))


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\n" + b"1,2\n" * 100 + b"3\n",
        b"a,b\n" + b"1,2\n" * 100 + b"\xff,2\n",
        b"a,b\n" + b"1,2\n" * 100 + b"1,\x00\n",
        b"a,b\n" + b"1,2\n" * 100 + b'1,"2\n',
        b"a,b\n",
        b"",
    ],
)
def test_what_is_wrong_in_a_later_window_is_refused_by_its_line(data: bytes) -> None:
    with refuses(TableError):
        in_windows(data, 64)


def test_lines_that_end_in_cr_are_lines(tmp_path: Path) -> None:
    assert [len(part) for part in in_windows(b"a,b\r" + b"1,2\r" * 100, 200)] == [49, 50, 1]


def test_a_truncated_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 100_000)[:-20])
    with refuses(TableError):
        chunks(path, 1_000)


def test_a_file_is_scored_completed_and_encoded_as_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks with the same numbers, also where the file is longer than a chunk."""
    monkeypatch.setattr("gcvae.files.table_reader.CHUNK_ROWS", 512)
    synthesizer, path = fitted("paper-gcvae"), tmp_path / "table.csv"
    write_table(parse_table(table(700), synthesizer.schema), path, synthesizer.schema)
    frame = read_table(path)
    scores = pd.concat(synthesizer.score_blocks(TableReader(path), draws=2), ignore_index=True)
    pd.testing.assert_frame_equal(scores, synthesizer.log_likelihood(frame, draws=2))
    among = range(448, 640)  # from within one part into the next
    some = pd.concat(
        synthesizer.scorer.blocks(TableReader(path), ScoreOptions(draws=2), among),
        ignore_index=True,
    )
    pd.testing.assert_frame_equal(some, scores.iloc[448:640].reset_index(drop=True))
    encoded = pd.concat(synthesizer.encode_blocks(TableReader(path)), ignore_index=True)
    pd.testing.assert_frame_equal(encoded, synthesizer.encode(frame))
    completed = pd.concat(synthesizer.impute_blocks(TableReader(path)), ignore_index=True)
    pd.testing.assert_frame_equal(completed, synthesizer.impute(frame))


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("first_row", [0, 1, 299, 300, 512, 699])
def test_rows_are_left_out_at_the_beginning(tmp_path: Path, form: str, first_row: int) -> None:
    path = rows_in(tmp_path, form)
    whole = pd.concat(chunks(path, 128), ignore_index=True)
    reader = TableReader(path, window_bytes=4096)
    found = list(reader.chunks(128, first_row))
    expected = whole.iloc[first_row:].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True), expected)
    assert [len(part) for part in found[:-1]] == [128] * (len(found) - 1)
    assert (reader.rows, reader.fraction) == (700, 1.0)
    if form != "parquet":
        lines = [line for part in found for line in lines_of(part)]
        assert lines == list(range(first_row + 2, 702))


def rows_in(folder: Path, form: str) -> Path:
    """700 rows with blanks in a file, a Parquet file of row groups of 300."""
    path, schema = folder / f"table.{form}", fitted("paper-gcvae").schema
    typed = parse_table(table(700), schema)
    if form == "parquet":
        typed.to_parquet(path, row_group_size=300)
    else:
        write_table(typed, path, schema)
    return path


def test_of_parquet_only_the_row_groups_with_the_rows_are_read(tmp_path: Path) -> None:
    path = rows_in(tmp_path, "parquet")
    data = bytearray(path.read_bytes())
    data[4:2000] = bytes(1996)  # of the first row group
    path.write_bytes(data)
    [rest] = TableReader(path).chunks(512, 300)
    assert len(rest) == 400
    with refuses(TableError):
        chunks(path, 512)


_PEAK = """
import resource, sys
from gcvae import TableReader
rows = sum(len(chunk) for chunk in TableReader(sys.argv[1]).chunks(4096))
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        path = tmp_path / f"{rows}.csv"
        with path.open("wb") as file:
            file.write(b"a,b,c,d,e,f,g,h\n")
            for _ in range(rows // 10_000):
                file.write(b"1.25,word,3,4,5,6,7,another\n" * 10_000)
        command = [sys.executable, "-c", _PEAK, str(path)]
        found, megabytes = subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout.split()
        assert int(found) == rows
        return int(megabytes)

    # Whole, the longer file is over a gigabyte of cells.
    assert peak(2_000_000) < peak(600_000) + 60


def test_a_pipe_is_refused_by_its_name(tmp_path: Path) -> None:
    pipe = tmp_path / "rows.csv"
    os.mkfifo(pipe)
    with refuses(TableError):
        list(TableReader(pipe).chunks(10))


def test_a_file_without_a_name_is_read_as_it_was_just_written(tmp_path: Path) -> None:
    """Arrow opens it anew, by itself."""
    frame = pd.DataFrame({"a": range(300), "b": ["x", "y", "z"] * 100})
    path = tmp_path / "table.parquet"
    frame.to_parquet(path)
    with tempfile.TemporaryFile() as file:
        file.write(path.read_bytes())
        for _ in range(2):
            [chunk] = TableReader(file).chunks(1_000)
            assert chunk.to_dict("list") == frame.to_dict("list")
