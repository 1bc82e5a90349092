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
from gcvae.files.table_reader import TableReader
from gcvae.files.tables import read_table, write_table
from gcvae.profiling.infer import infer_schema
from gcvae.synthesizer import Synthesizer
from tests.wordings import refuses, same_wording

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
    ("data", "encoding"),
    [
        (b"a,b\n1,caf\xe9\n", None),
        ("a,b\n1,x\n2,474 €\n".encode("cp1252"), None),
        (b"a,b\n1,M\x81ller\n", None),
        ("a,b\n1,北京\n2,上海\n".encode("gb18030"), None),
        ("a,b\n1,Москва\n".encode("cp1251"), None),
        ("a,b\n1,Größe\n".encode("latin-1") * 9, None),
        ("a,b\n1,2\n".encode("utf-16"), None),
        (TEXT.encode("utf-16-be"), None),
        (TEXT.encode("utf-16-le"), None),
        (b"a,b\n1,x\n2,\x81\n", "cp1252"),
        ("a,b\n1,x\n2,y\n".encode("utf-16")[:-1], "utf-16"),
        ("a,b\n1,x\n2,".encode("utf-16-be") + b"\xd8\x00\x00\x61", "utf-16-be"),
        (b"a,b\n1,2\n", "latin2000"),
        (b"a,b\n1,2\n", "latin-99"),
        (b"a,b\n1,2\n", "iso-8859-99"),
        (b"a,b\n1,2\n", "windows-1259"),
        (b"a,b\n1,2\n", "shift-jiss"),
        (b"a,b\n1,2\n", "rot13"),
        (b"a,b\n1,2\n", "zip"),
        (b"a,b\n1,2\n", "unicode_escape"),
        (b"a,b\n1,2\n", "qqqqq"),
        (b"PAR1rest", "latin-1"),
        (b"\xd0\xcf\x11\xe0rest", "cp1252"),
    ],
)  # fmt: skip
def test_bytes_of_another_encoding_are_refused_with_a_proposal(
    data: bytes, encoding: str | None
) -> None:
    same_wording(refusal(data, encoding))


def test_a_bad_byte_is_named_by_its_line_behind_the_first_megabyte(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_bytes(b"a,b\n" + b"1,\xe4\n" * 600_000 + b"2,\x81\n")
    with refuses(TableError, line=600002):
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
    "data",
    [
        zipped("[Content_Types].xml", "xl/workbook.xml"),
        zipped("docProps/app.xml", "xl/workbook.xml"),
        zipped(mimetype=b"application/vnd.oasis.opendocument.spreadsheet"),
        zipped("table.csv"),
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        b"%PDF-1.7\n%\xe2\xe3",
        b"$FL2@(#) SPSS DATA FILE",
        b"<stata_dta><header>",
        b"ARROW1\0\0\xff\xff",
        b'{\n  "rows": []}',
        b'[\n  {"a": 1}]',
        b"BZh91AY&SY\x8f",
        bytes(257) + b"ustar\x0000",
        b"<?xml version='1.0'?>",
    ],
)  # fmt: skip
def test_a_file_that_is_no_text_is_named_with_the_way_out(data: bytes) -> None:
    same_wording(refusal(data))
    same_wording(refusal(gzip.compress(data)))


@pytest.mark.parametrize("name", ["ORC", "ARROW1", "RDX2"])
def test_a_column_may_have_the_name_that_another_format_begins_with(name: str) -> None:
    assert list(read_table(f"{name},b\n1,2\n".encode()).columns) == [name, "b"]
