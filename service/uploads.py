"""An upload on its way to disk: streamed to an unnamed file, in memory a chunk at a time."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, BinaryIO

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from gcvae.errors import Problem
from gcvae.gzipped import unzipped
from service.body_limits import TABLE_TYPES
from service.errors import MediaTypeError, RequestError, TooLargeError
from service.json_bodies import read_json
from service.names import refuse_names
from service.settings import ServiceSettings

CHUNK_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_FIELDS = ("file", "name", "schema")

UPLOAD_TYPES = ("multipart/form-data", *TABLE_TYPES)
"""Kinds of body that bring a table."""


@dataclass(frozen=True)
class Upload:
    """A received table. The file has no name on disk: whatever happens, nothing is left of it.

    `place` is `?` where name and schema stand in the query, and `/` where in a form. `is_json`
    where the table was made of the `rows` of a JSON body.
    """

    file: BinaryIO
    name: str | None
    schema: dict[str, Any] | None
    place: str = "/"
    is_json: bool = False

    def sha256(self) -> str:
        """Checksum of the bytes as they came."""
        digest = hashlib.sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """The bytes as they came."""
        self.file.seek(0)
        while chunk := self.file.read(CHUNK_BYTES):
            yield chunk


@asynccontextmanager
async def received(
    request: Request, settings: ServiceSettings, readable: tuple[str, ...] = UPLOAD_TYPES
) -> AsyncIterator[Upload]:
    """The table that the request brings, as a form or as its bare body.

    Args:
        readable: every kind of body that the call reads, for the refusal of another.

    Raises:
        MediaTypeError: the body is neither a form nor a table.
        RequestError: the form has no file, or fields that are not known.
        TooLargeError: the body is over its limit (out of the reading of it).
    """
    content_type = request.headers.get("Content-Type")
    essence = (content_type or "").split(";")[0].strip().lower()
    if essence == "multipart/form-data":
        async with request.form(max_files=1, max_part_size=settings.max_json_bytes) as form:
            yield _from_form(form.multi_items())
    elif essence in TABLE_TYPES:
        with tempfile.TemporaryFile(prefix="gcvae-upload-") as file:
            await _receive_body(request, file)
            query = request.query_params
            yield Upload(file, query.get("name"), _read_schema(query.get("schema"), "?"), "?")
    else:
        raise MediaTypeError(content_type, readable)


async def _receive_body(request: Request, file: BinaryIO) -> None:
    held: list[bytes] = []
    n_held = 0
    async for chunk in request.stream():
        held.append(chunk)
        n_held += len(chunk)
        if n_held >= CHUNK_BYTES:
            await run_in_threadpool(file.writelines, held)
            held, n_held = [], 0
    await run_in_threadpool(file.writelines, held)


def _from_form(items: list[tuple[str, UploadFile | str]]) -> Upload:
    fields = dict(items)
    refuse_names((name for name, _ in items), _FIELDS, "field", "/")
    file = fields.get("file")
    if not isinstance(file, UploadFile):
        raise RequestError(
            Problem("the form has no file", "/file", expected="a CSV, .csv.gz or Parquet file")
        )
    name = _text(fields, "name")
    if name is None and file.filename:
        name = table_name(file.filename)
    return Upload(file.file, name, _read_schema(_text(fields, "schema")))


def _text(fields: dict[str, UploadFile | str], name: str) -> str | None:
    value = fields.get(name)
    if isinstance(value, UploadFile):
        raise RequestError(Problem("is a file", f"/{name}", expected="a plain form field"))
    return value


def table_name(filename: str) -> str:
    r"""The file's name without folders and endings.

    >>> table_name("C:\\data\\adult.train.csv.gz")
    'adult.train'
    """
    name = PurePath(filename.replace("\\", "/")).name
    for ending in (".gz", ".csv", ".parquet"):
        name = name.removesuffix(ending)
    return name


def _read_schema(text: str | None, place: str = "/") -> dict[str, Any] | None:
    if text is None:
        return None
    pointer = f"{place}schema"
    schema = read_json(text.encode("utf-8", "surrogatepass"), "the schema", pointer)
    if not isinstance(schema, dict):
        raise RequestError(
            Problem("the schema is no object", pointer, expected='{"columns": [...]}')
        )
    return schema


def table_format(file: BinaryIO) -> str:
    """`csv`, `csv.gz` or `parquet`, by the first bytes."""
    file.seek(0)
    start = file.read(len(_PARQUET))
    file.seek(0)
    if start.startswith(_GZIP):
        return "csv.gz"
    return "parquet" if start == _PARQUET else "csv"


def unzip(file: BinaryIO, target: BinaryIO, max_bytes: int) -> None:
    """Write the decompressed file to `target`.

    Raises:
        TableError: it is no whole gzip file.
        TooLargeError: it holds more than `max_bytes`.
    """
    n_bytes = 0
    for piece in unzipped(file):
        n_bytes += len(piece)
        if n_bytes > max_bytes:
            what = f"the table has more than {max_bytes} bytes after decompression"
            raise TooLargeError(what, max_bytes, "max_table_bytes")
        target.write(piece)
    target.seek(0)
