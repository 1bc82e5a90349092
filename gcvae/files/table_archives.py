"""ZIP files of tables: each file in one is a table, named after the file without its extension.

Files are never unpacked to paths that an archive specifies. Archives written by this module are not
compressed, so that each table is a contiguous range of bytes.
"""

from __future__ import annotations

import hashlib
import io
import re
import stat
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, BinaryIO
from unicodedata import normalize
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from gcvae.errors import Problem, TableError
from gcvae.files.other_files import refuse_office_file

MEDIA_TYPE = "application/zip"
ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet")
"""Extensions of files that are tables."""
_LISTED = ", ".join(ENDINGS)

_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")
_TABLE = re.compile(r"(.+?)\.(?:parquet|(?:csv|tsv|txt)(?:\.gz)?)", re.IGNORECASE)
_MOST_NAME = 200
_CHUNK_BYTES = 1 << 20
_ENCRYPTED = 0x1
_MADE = (1980, 1, 1, 0, 0, 0)
"""Date of every file in an archive, always the same so that equal tables give equal archives."""
_DAMAGES = (
    BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError, LookupError,
)  # fmt: skip
"""Exceptions that reading a damaged archive may raise."""


@dataclass(frozen=True)
class PackedTable:
    """Byte range of one table's file in an uncompressed ZIP archive, and its checksum."""

    offset: int
    size_bytes: int
    sha256: str


def is_archive(start: bytes) -> bool:
    """Returns whether a file that begins with these bytes is a ZIP file."""
    return start.startswith(_BEGINNINGS)


def table_of_file(filename: str) -> str | None:
    """Returns the name of the table in a file, without extension; None if the extension is not that
    of a table.

    >>> table_of_file("users.csv.gz"), table_of_file("read.me")
    ('users', None)
    """
    found = _TABLE.fullmatch(filename)
    return found[1] if found else None


@contextmanager
def opened_archive(file: BinaryIO) -> Iterator[tuple[ZipFile, dict[str, ZipInfo]]]:
    """Context manager that yields (the ZIP file, its files by name of their table).

    Raises:
        TableError: The archive is damaged or contains no table; or a file in it is not a table,
            lies in another folder than the rest, or has the same table name as another file.
    """
    file.seek(0)
    refuse_office_file((), file.read(64))
    with _damage_as_error():
        archive = ZipFile(file)
        tables = _tables(archive)
    with archive:
        yield archive, tables


def unpack(
    archive: ZipFile, member: ZipInfo, target: BinaryIO, check: Callable[[int], None]
) -> None:
    """Writes a file of an archive to `target`, an empty file, and rewinds `target`.

    The function `check` receives the number of bytes written so far, and may raise an exception to
    stop, for example if the file is too large.

    Raises:
        TableError: The data is damaged.
    """
    n_bytes = 0
    with _damage_as_error(member.filename), archive.open(member) as source:
        while chunk := source.read(_CHUNK_BYTES):
            n_bytes += len(chunk)
            check(n_bytes)
            target.write(chunk)
    target.seek(0)


def write_archive(
    target: BinaryIO, files: Iterable[tuple[str, Callable[[io.RawIOBase], object]]]
) -> dict[str, PackedTable]:
    """Writes files into a new, uncompressed archive; returns the byte range of each by its name.
    `files` are pairs of a name and a function that writes the content to the file it receives."""
    found = {}
    with ZipFile(target, "w", ZIP_STORED) as archive:
        for name, write in files:
            member = ZipInfo(name, _MADE)
            member.external_attr = (stat.S_IFREG | 0o644) << 16
            with archive.open(member, "w", force_zip64=True) as sink:
                offset, digesting = target.tell(), _ChecksumFile(sink)
                write(digesting)
            found[name] = PackedTable(offset, digesting.size_bytes, digesting.digest.hexdigest())
    return found


def archive_as_file(file: BinaryIO, table: PackedTable) -> None:
    """Replaces the content of an opened archive file by the bytes of one of its tables."""
    for at in range(0, table.size_bytes, _CHUNK_BYTES):
        file.seek(table.offset + at)
        chunk = file.read(min(_CHUNK_BYTES, table.size_bytes - at))
        file.seek(at)
        file.write(chunk)
    file.truncate(table.size_bytes)


def files_by_table(names: Iterable[str]) -> dict[str, str]:
    """Returns a dictionary from the name of each table to the name of its file.

    Raises:
        TableError: A file is not a table, or two files have the same table name.
    """
    found: dict[str, str] = {}
    known: dict[str, str] = {}
    problems = []
    for name in names:
        table = table_of_file(PurePosixPath(name).name)
        # Case is ignored, as some file systems and databases do.
        same = normalize("NFC", table or "").casefold()
        if table is None:
            problems.append(Problem(f"{name} is not a table", expected=f"files in {_LISTED}"))
        elif len(table) > _MOST_NAME or not name.isprintable():
            expected = f"at most {_MOST_NAME} printable characters"
            problems.append(Problem(f"{name!r} cannot be the name of a table", expected=expected))
        elif same in known:
            message = f"{known[same]} and {name} are the same table"
            expected = "one file for each table"
            expected += "" if table in found else ", whatever the case of its name"
            problems.append(Problem(message, expected=expected))
        else:
            found[table] = known[same] = name
    if problems:
        raise TableError(*problems)
    return found


def _tables(archive: ZipFile) -> dict[str, ZipInfo]:
    """Returns the files of an archive by table name, without files that operating systems add."""
    listed = [one for one in archive.infolist() if not one.is_dir() and not _is_of_system(one)]
    refuse_office_file([one.orig_filename for one in listed])
    if not listed:
        message = "there is no table in the ZIP file"
        raise TableError(Problem(message, expected=f"files in {_LISTED}"))
    members = {member.orig_filename: member for member in listed}
    problems = [
        Problem(f"{name} is in the ZIP file {n} times", expected="each file once")
        for name, n in Counter(member.orig_filename for member in listed).items()
        if n > 1
    ]
    problems += [problem for member in members.values() if (problem := _member_problem(member))]
    folders = sorted({str(PurePosixPath(name).parent) for name in members})
    if len(folders) > 1 and not problems:
        message = f"{', '.join(sorted(members)[:3])} lie in {len(folders)} folders"
        problems.append(Problem(message, expected="all tables in one folder, or in none"))
    if problems:
        raise TableError(*problems)
    return {table: members[name] for table, name in files_by_table(members).items()}


def _is_of_system(member: ZipInfo) -> bool:
    name = member.orig_filename
    return name.startswith("__MACOSX/") or (
        PurePosixPath(name).name.startswith(".") and "\\" not in name
    )


def _member_problem(member: ZipInfo) -> Problem | None:
    """Returns a problem if a file in an archive cannot be read, else None."""
    name = member.orig_filename
    steps = name.split("/")
    if "\\" in name or ".." in steps or "" in steps or ":" in steps[0]:
        return Problem(f"{name!r} is a path out of the ZIP file", expected="a plain name")
    if member.flag_bits & _ENCRYPTED:
        return Problem(f"{name} is encrypted", expected="a ZIP file without a password")
    mode = member.external_attr >> 16
    if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
        return Problem(f"{name} is a link or a device", expected="a plain file")
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        message = f"{name} is packed by a method that is not read"
        return Problem(message, expected="a ZIP file that is deflated or stored, as most are")
    return None


@contextmanager
def _damage_as_error(name: str | None = None) -> Iterator[None]:
    """Context manager that converts read errors to a TableError about the archive, or about the
    file `name` in it."""
    try:
        yield
    except TableError:
        raise
    except _DAMAGES as error:
        what = "the ZIP file" if name is None else f"{name} in the ZIP file"
        problem = Problem(f"{what} cannot be read: {error}", expected="a whole ZIP file")
        raise TableError(problem) from error


class _ChecksumFile(io.RawIOBase):
    """Append-only file that computes the checksum of the written bytes."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self.digest = hashlib.sha256()
        self.size_bytes = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size_bytes  # Parquet's footer holds positions in the whole file

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._sink.write(content)
        self.digest.update(content)
        self.size_bytes += len(content)
        return len(content)
