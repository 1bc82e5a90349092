"""Recognises unsupported file formats by their first bytes, and explains how to convert them."""

from __future__ import annotations

import re
from collections.abc import Collection

from gcvae.errors import Problem, TableError

CSV_EXPECTED = "a CSV file in UTF-8 with a header row"
_EXCEL = (
    'a CSV file: save the sheet as "CSV UTF-8", or write'
    ' pandas.read_excel("book.xlsx").to_csv("table.csv", index=False)'
)
_OFFICE = "an Excel workbook or another Office document", _EXCEL
_OPEN_DOCUMENT = "an OpenDocument spreadsheet", _EXCEL.replace("book.xlsx", "book.ods")
_PANDAS = "a CSV or Parquet file; pandas reads most formats and writes both"
_UNPACKED = "the CSV file in it, unpacked; .csv.gz is read as it is"

_BEGINNINGS: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF", "a PDF document", CSV_EXPECTED),
    (b"\x89PNG", "a PNG picture", CSV_EXPECTED),
    (b"\xff\xd8\xff", "a JPEG picture", CSV_EXPECTED),
    (b"SQLite format", "an SQLite database", _PANDAS),
    (b"$FL", "an SPSS file", _PANDAS),
    (b"<stata_dta>", "a Stata file", _PANDAS),
    (b"HEADER RECORD*******LIB", "a SAS transport file", _PANDAS),
    (bytes(12) + b"\xc2\xea\x81\x60", "a SAS file", _PANDAS),
    (b"ARROW1", "an Arrow (Feather) file", _PANDAS),
    (b"ORC", "an ORC file", _PANDAS),
    (b"\x89HDF", "an HDF5 file", _PANDAS),
    (b"RDX", "an R data file", 'a CSV file, as write.csv(table, "table.csv") writes it'),
    (b"7z\xbc\xaf", "a 7-Zip archive", _UNPACKED),
    (b"Rar!", "a RAR archive", _UNPACKED),
    (b"BZh", "packed by bzip2", _UNPACKED),
    (b"\xfd7zXZ", "packed by xz", _UNPACKED),
    (b"\x28\xb5\x2f\xfd", "packed by Zstandard", _UNPACKED),
)
_TAR_AT = 257


def refuse_other_file(data: bytes) -> None:
    """Checks that the first bytes of a file are not those of another format, such as Excel or PDF.

    Raises:
        TableError: The file has another format; the error explains how to get a CSV file from it.
    """
    what, expected = _other_file(data)
    if what:
        raise TableError(Problem(f"the file is {what}, not a CSV file", expected=expected))


def refuse_office_file(names: Collection[str], start: bytes = b"") -> None:
    """Checks that a ZIP file, given the names of its files and its first bytes, is neither a
    workbook nor another office document.

    Raises:
        TableError: It is such a document; the error explains how to get a CSV file from it.
    """
    what = ""
    if "[Content_Types].xml" in names or b"[Content_Types].xml" in start[:64]:
        what, expected = _OFFICE
    elif {"mimetype", "content.xml"} <= set(names):
        what, expected = _OPEN_DOCUMENT
    if what:
        message = f"the file is {what}, not a ZIP file of tables"
        raise TableError(Problem(message, expected=expected))


def _other_file(data: bytes) -> tuple[str, str]:
    """Returns (description of the file's format, how to convert it); empty texts if the file may be
    a table."""
    if data.startswith(b"PK\x03\x04"):
        return _zipped(data[:4096])
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        return "an old Excel workbook or another Office document", _EXCEL
    for beginning, what, expected in _BEGINNINGS:
        if data.startswith(beginning) and _is_no_text(data, beginning):
            return what, expected
    if data[_TAR_AT : _TAR_AT + 5] == b"ustar":
        return "a tar archive", _UNPACKED
    head = data[:512].lstrip().lower()
    if head.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "a web page or XML", CSV_EXPECTED
    if re.match(rb'\{\s*"|\[\s*[\[{]|[\[{]\s*\n|\{\s*\}', head):
        return "JSON", _PANDAS
    return "", ""


def _is_no_text(data: bytes, beginning: bytes) -> bool:
    """Returns whether a file that begins with the magic bytes `beginning` is binary. A text file
    can begin with magic bytes that are letters and digits, such as ORC, in a column name. The file
    then counts as binary only if a byte that is no ASCII text is among its first 64 bytes."""
    return not beginning.isalnum() or bool(re.search(rb"[\x00-\x08\x80-\xff]", data[:64]))


def _zipped(head: bytes) -> tuple[str, str]:
    """Returns (description, how to convert it) of a ZIP file."""
    if b"opendocument.spreadsheet" in head:
        return _OPEN_DOCUMENT
    if b"[Content_Types].xml" in head or b"docProps/" in head or b"xl/" in head:
        return _OFFICE
    return "a zip archive", _UNPACKED
