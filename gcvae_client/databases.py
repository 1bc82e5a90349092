"""Sends and receives databases (several tables by name) as one ZIP file."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from gcvae_client.answers import WantedTable, format_by_ending, seeded
from gcvae_client.bodies import CHUNK_BYTES, chunks
from gcvae_client.connection import Body
from gcvae_client.frames import (
    Formats,
    Frame,
    is_frame,
    read_frame,
    require_frames,
    table_bytes,
    table_format,
)
from gcvae_client.service import FilePath

ENDINGS = (".csv.gz", ".tsv.gz", ".txt.gz", ".csv", ".tsv", ".txt", ".parquet")
"""Extensions of files that are tables."""
_MADE = (1980, 1, 1, 0, 0, 0)
"""Date of every file in the ZIP file, so that a repeated request sends the same bytes."""


def is_database(tables: object) -> bool:
    """Returns whether an argument is a database: a dictionary of tables by name, or a folder."""
    if isinstance(tables, Mapping):
        return True
    return isinstance(tables, str | os.PathLike) and Path(tables).is_dir()


def database_body(tables: Any) -> Body:
    """Returns a request body that is a ZIP file of tables.

    The ZIP file is created as a temporary file each time the request is sent.

    Args:
        tables: A dictionary of tables (frames, paths or bytes) by name, or the path of a folder.

    Raises:
        ValueError: There is no table, or the extension of a file is not that of a table.
    """
    named = _files_of(Path(tables)) if isinstance(tables, str | os.PathLike) else dict(tables)
    if not named:
        raise ValueError(f"{tables}: there is no table; one ends in {', '.join(ENDINGS)}")
    plain = {name: table_bytes(t) if is_frame(t) else t for name, t in named.items()}
    files = {f"{name}{_ending(table)}": table for name, table in plain.items()}
    headers = {"Content-Type": "application/zip"}

    def body(stack: ExitStack) -> dict[str, Any]:
        return {"content": chunks(stack.enter_context(_packed(files))), "headers": headers}

    return body


@contextmanager
def _packed(files: Mapping[str, Any]) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() as packed:
        with zipfile.ZipFile(packed, "w") as archive:
            for name, table in files.items():
                member = zipfile.ZipInfo(name, _MADE)
                member.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(member, "w", force_zip64=True) as sink, _opened(table) as source:
                    shutil.copyfileobj(source, sink, CHUNK_BYTES)
        packed.seek(0)
        yield packed


@dataclass(frozen=True)
class WantedDatabase(WantedTable):
    """Form in which a call returns a synthetic database: data frames by table, or a ZIP file of
    tables."""

    def _frame(self, file: BinaryIO, formats: Formats, seed: str | int | None) -> dict[str, Frame]:
        like, found = self.like or {}, {}
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                content, table = io.BytesIO(archive.read(name)), Path(name).stem
                frame = read_frame(content, self.format, like.get(table), formats)
                found[table] = seeded(frame, seed)
        return found


def wanted_database(
    format: str | None, to: FilePath | None, table: str | None, like: Any = None
) -> WantedTable:
    """Returns the form in which a call returns a synthetic database or one of its tables: a file if
    `to` is given, bytes if only `format` is given, otherwise data frames.

    Args:
        format: Format of the tables; None for that of the extension of `to`.
        to: Path of the file; None to save no file.
        table: Name of the only table to return; None for all tables.
        like: Tables that were sent, by name; None if none were sent. If a table was sent as a data
            frame, the returned frame has the same library and index. All other frames are pandas
            frames.

    Raises:
        ValueError: The extension of `to` is not supported.
        MissingPackageError: The result is a data frame, and pandas is not installed.
    """
    if table is not None:
        if to is not None and format is None:
            format = format_by_ending(to, (".csv", ".parquet"))
        if format is not None:
            return WantedTable(format, to, False, None)
        return WantedTable(_best_format(), None, True, None)
    if to is not None:
        format_by_ending(to, (".zip",))
        return WantedDatabase(format or "csv", to, False, None)
    if format is not None:
        return WantedDatabase(format, None, False, None)
    sent = like if isinstance(like, Mapping) else {}
    frames = {name: frame for name, frame in sent.items() if is_frame(frame)}
    return WantedDatabase(_best_format(), None, True, frames)


def _best_format() -> str:
    """Returns the format that preserves most dtypes: Parquet if it can be read, else CSV."""
    require_frames()
    found = table_format(None)
    return found if found == "parquet" else "csv"


def _files_of(folder: Path) -> dict[str, Path]:
    """Returns the paths of a folder's tables by name; files with other extensions are ignored."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        ending = next((each for each in ENDINGS if path.name.lower().endswith(each)), None)
        if ending is None or path.name.startswith("."):
            continue
        name = path.name[: -len(ending)]
        if name in found:
            raise ValueError(f"{found[name].name} and {path.name} are the same table")
        found[name] = path
    return found


def _ending(table: Any) -> str:
    """Returns the file extension of a table, by its path or the first bytes of its content."""
    if isinstance(table, str | os.PathLike):
        name = Path(table).name.lower()
        found = next((ending for ending in ENDINGS if name.endswith(ending)), None)
        if found is None:
            raise ValueError(f"{table} is no table; one ends in {', '.join(ENDINGS)}")
        return found
    if table.startswith(b"\x1f\x8b"):
        return ".csv.gz"
    return ".parquet" if table.startswith(b"PAR1") else ".csv"


def _opened(table: Any) -> BinaryIO:
    return io.BytesIO(table) if isinstance(table, bytes) else Path(table).open("rb")
