"""Text files in other encodings than UTF-8, and files that are no text."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from gcvae.errors import TableError
from gcvae.files.delimited import read_delimited
from gcvae.files.table_reader import TableReader
from gcvae.files.tables import read_table, write_table
from gcvae.profiling.infer_schema import infer_schema
from gcvae.synthesizer import Synthesizer

ENCODINGS = (
    "latin-1", "cp1252", "mac-roman", "cp850", "utf-16", "utf-16-le", "utf-16-be", "utf-32",
    "gb18030", "utf-8-sig",
)  # fmt: skip
TEXT = "name,stadt,n\n" + "".join(
    f'"Müller {i}\nsohn",{("Köln", "Fürth", "Größe")[i % 3]},{i / 4}\n' for i in range(60)
)


def refusal(data: bytes, encoding: str | None = None) -> str:
    with pytest.raises(TableError) as caught:
        read_table(data, encoding=encoding)
    return str(caught.value)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_table_is_the_same_in_every_encoding_that_is_named(tmp_path: Path, encoding: str) -> None:
    expected = read_table(TEXT.encode())
    data = TEXT.encode(encoding)
    pd.testing.assert_frame_equal(read_table(data, encoding=encoding), expected)
    assert infer_schema(read_table(data, encoding=encoding)) == infer_schema(expected)
    for name, content in (("t.csv", data), ("t.csv.gz", gzip.compress(data))):
        path = tmp_path / name
        path.write_bytes(content)
        assert infer_schema(TableReader(path, encoding=encoding)) == infer_schema(expected)
        for window_bytes in (101, 1 << 20):
            reader = TableReader(path, encoding=encoding, window_bytes=window_bytes)
            chunks = list(reader.chunks(7))
            pd.testing.assert_frame_equal(pd.concat(chunks, ignore_index=True), expected)
            lines = [chunk.attrs["lines"][label] for chunk in chunks for label in chunk.index]
            assert lines == list(range(2, 122, 2))


def test_other_line_ends_and_separators_are_told_apart_in_every_encoding() -> None:
    data = "größe;b\r1,5;x\r2,5;ä\r".encode("utf-16")
    assert read_table(data, encoding="utf-16").to_dict("list") == {
        "größe": ["1,5", "2,5"],
        "b": ["x", "ä"],
    }


def test_memory_does_not_grow_with_a_file_in_another_encoding() -> None:
    line = "Köln,1.5\n".encode("cp1252")

    class Endless(io.RawIOBase):
        """Twenty megabytes of rows."""

        n_left = 20 << 20

        def read(self, n_bytes: int = -1) -> bytes:
            taken = min(n_bytes, self.n_left) // len(line) * len(line)
            self.n_left -= taken
            return line * (taken // len(line))

    from gcvae.files.text_encodings import DecodedFile

    file = DecodedFile(Endless(), "cp1252")
    tracemalloc.start()
    while file.read(1 << 16):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 << 20


@pytest.mark.parametrize(
    ("data", "encoding", "expected"),
    [
        (b"a,b\n1,caf\xe9\n", None, "line 2: byte 0xe9 at offset 9 is not UTF-8 (expected: UTF-8,"
         " as spreadsheets save it under \"CSV UTF-8\"; or name its encoding;"
         " with encoding cp1252 this reads 'café')"),
        ("a,b\n1,x\n2,474 €\n".encode("cp1252"), None, "cp1252 this reads '€'"),
        (b"a,b\n1,M\x81ller\n", None, "or name its encoding, such as cp850, mac-roman or latin-1"),
        ("a,b\n1,北京\n2,上海\n".encode("gb18030"), None, "such as gb18030, shift_jis, euc_kr or"),
        ("a,b\n1,Москва\n".encode("cp1251"), None, "euc_kr or cp1251"),
        ("a,b\n1,Größe\n".encode("latin-1") * 9, None, "cp1252 this reads 'Größe'"),
        ("a,b\n1,2\n".encode("utf-16"), None, "text in UTF-16 (expected: a CSV file in UTF-8 with a"
         " header row; or name its encoding, utf-16)"),
        (TEXT.encode("utf-16-be"), None, "or name its encoding, utf-16-be by the look of it"),
        (TEXT.encode("utf-16-le"), None, "or name its encoding, utf-16-le by the look of it"),
        (b"a,b\n1,x\n2,\x81\n", "cp1252", "line 3: byte 0x81 at offset 10 is not cp1252 (expected:"
         " the encoding that the file is in, such as cp1252, latin-1 or utf-16)"),
        ("a,b\n1,x\n2,y\n".encode("utf-16")[:-1], "utf-16", "line 3: the last byte at offset 25 is"
         " not utf-16"),
        ("a,b\n1,x\n2,".encode("utf-16-be") + b"\xd8\x00\x00\x61", "utf-16-be", "line 3: byte 0xd8"
         " at offset 20 is not utf-16-be"),
        (b"a,b\n1,2\n", "latin2000", "no encoding 'latin2000' (expected: latin-1, or another)"),
        (b"a,b\n1,2\n", "latin-99", "no encoding 'latin-99' (expected: latin-1, or another)"),
        (b"a,b\n1,2\n", "iso-8859-99", "(expected: latin-1, or another)"),
        (b"a,b\n1,2\n", "windows-1259", "(expected: cp1252, or another)"),
        (b"a,b\n1,2\n", "shift-jiss", "(expected: shift_jis, or another)"),
        (b"a,b\n1,2\n", "rot13", "no encoding 'rot13' (expected: the name of one, such as utf-8,"),
        (b"a,b\n1,2\n", "zip", "no encoding 'zip' (expected: the name of one, such as utf-8,"),
        (b"a,b\n1,2\n", "unicode_escape", "there is no encoding 'unicode_escape'"),
        (b"a,b\n1,2\n", "qqqqq", "such as utf-8, cp1252, latin-1, utf-16, mac-roman,"),
        (b"PAR1rest", "latin-1", "the encoding is iso8859-1, but the file is Parquet"),
        (b"\xd0\xcf\x11\xe0rest", "cp1252", "an old Excel workbook"),
    ],
)  # fmt: skip
def test_bytes_of_another_encoding_are_refused_with_a_proposal(
    data: bytes, encoding: str | None, expected: str
) -> None:
    assert expected in refusal(data, encoding)


def test_a_bad_byte_is_named_by_its_line_behind_the_first_megabyte(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_bytes(b"a,b\n" + b"1,\xe4\n" * 600_000 + b"2,\x81\n")
    with pytest.raises(TableError, match="line 600002: byte 0x81 at offset 2400006 is not cp1252"):
        list(TableReader(path, encoding="cp1252").chunks(1000))


def test_a_model_scores_and_fills_a_file_of_the_encoding_that_it_learnt_from(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.replace("Fürth", "").encode("cp1252"))
    reader = TableReader(path, encoding="cp1252")
    fitted = Synthesizer.fit(reader, preset="fast", settings={"max_steps": 5})
    fitted.save(tmp_path / "m.gcvae")
    loaded = Synthesizer.load(tmp_path / "m.gcvae")
    assert set(loaded.schema["stadt"].levels or ()) == {"Köln", "Größe"}
    assert len(pd.concat(loaded.score_blocks(reader))) == 60
    completed = pd.concat(loaded.impute_blocks(reader), ignore_index=True)
    assert set(completed["stadt"]) == {"Köln", "Größe"}
    assert completed["name"][0] == "Müller 0\nsohn"
    write_table(loaded.sample(20, 0), tmp_path / "s.csv", loaded.schema)
    assert "Köln" in (tmp_path / "s.csv").read_text("utf-8")


# Files that are no text


def zipped(*names: str, mimetype: bytes | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        if mimetype is not None:
            archive.writestr("mimetype", mimetype)
        for name in names:
            archive.writestr(name, "content")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "what", "way_out"),
    [
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook", "CSV UTF-8"),
        (zipped("docProps/app.xml", "xl/workbook.xml"), "an Excel workbook", "read_excel"),
        (zipped(mimetype=b"application/vnd.oasis.opendocument.spreadsheet"),
         "an OpenDocument spreadsheet", 'read_excel("book.ods").to_csv("table.csv", index=False)'),
        (zipped("table.csv"), "a zip archive", "the CSV file in it, unpacked"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook", "read_excel"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF document", "a CSV file in UTF-8 with a header row"),
        (b"$FL2@(#) SPSS DATA FILE", "an SPSS file", "read_spss"),
        (b"<stata_dta><header>", "a Stata file", "read_stata"),
        (b"ARROW1\0\0\xff\xff", "an Arrow (Feather) file", "read_feather"),
        (b'{\n  "rows": []}', "JSON", 'read_json("file.json").to_csv'),
        (b'[\n  {"a": 1}]', "JSON", "read_json"),
        (b"BZh91AY&SY\x8f", "packed by bzip2", "unpacked"),
        (bytes(257) + b"ustar\x0000", "a tar archive", "unpacked"),
        (b"<?xml version='1.0'?>", "a web page or XML", "a CSV file"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_text_is_named_with_the_way_out(
    data: bytes, what: str, way_out: str
) -> None:
    told = refusal(data)
    assert f"the file is {what}" in told
    assert way_out in told
    assert what in refusal(gzip.compress(data))


@pytest.mark.parametrize("name", ["ORC", "ARROW1", "RDX2"])
def test_a_column_may_have_the_name_that_another_format_begins_with(name: str) -> None:
    assert list(read_delimited(f"{name},b\n1,2\n".encode()).columns) == [name, "b"]
