"""Bodies of requests: tables, rows and names as the service takes them."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from gcvae_client.connection import Body
from gcvae_client.frames import (
    Frame,
    is_frame,
    row_documents,
    table_bytes,
)

Table = str | os.PathLike[str] | bytes | Frame
Rows = Table | Sequence[Mapping[str, Any]]
CHUNK_BYTES = 1 << 20


def listed(names: Sequence[str]) -> str:
    """Names with commas between, each in quotes: any may have a comma itself."""
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="").writerow(names)
    return line.getvalue()


def name_of(table: Table | Mapping[str, Table]) -> str | None:
    if isinstance(table, bytes | Mapping) or is_frame(table):
        return None
    name = Path(table).name
    for ending in (".zip", ".gz", ".csv", ".parquet", ".gcvae"):
        name = name.removesuffix(ending)
    return name


def of_table(encoding: str | None) -> dict[str, Any]:
    return {} if encoding is None else {"encoding": encoding}


def rows_body(rows: Rows, formats: Callable[[], dict[str, str]]) -> Body:
    if isinstance(rows, str | os.PathLike | bytes) or is_frame(rows):
        return bare_body(rows)
    listed = row_documents(rows, formats)
    return lambda _: {"json": {"rows": listed}}


def bare_body(table: Table) -> Body:
    """The bare bytes: three times faster than a form. What they are, the service sees itself."""
    headers = {"Content-Type": "application/octet-stream"}
    if is_frame(table):
        table = table_bytes(table)
    if isinstance(table, bytes):
        return lambda _: {"content": table, "headers": headers}
    path = Path(table)
    return lambda files: {"content": chunks(_opened(path, files)), "headers": headers}


def form_body(bare: Body, fields: dict[str, str], filename: str) -> Body:
    """What is a bare body, in a form beside other fields."""

    def body(files: ExitStack) -> dict[str, Any]:
        content = bare(files)["content"]
        file = files.enter_context(_held([content] if isinstance(content, bytes) else content))
        return {"files": {"file": (filename, file)}, "data": fields}

    return body


@contextmanager
def _held(pieces: Iterable[bytes]) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() as file:
        file.writelines(pieces)
        file.seek(0)
        yield file


def _opened(path: Path, files: ExitStack) -> BinaryIO:
    return files.enter_context(path.open("rb"))


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """A file piece by piece."""
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
