"""Uploaded tables and models, streamed in chunks to temporary files."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, BinaryIO

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from gcvae.errors import Problem
from gcvae.files.table_archives import files_by_table, write_archive
from gcvae.files.text_encodings import CHUNK_BYTES, checked_encoding
from service.errors import MediaTypeError, RequestError, TableLimitError
from service.http.body_limits import ARCHIVE_TYPE, MODEL_TYPES, TABLE_TYPES
from service.http.json_bodies import read_json
from service.http.query_parameters import refuse_names
from service.settings import ServiceSettings

_FORM = "multipart/form-data"
_TABLE = ("file", "name", "schema", "encoding"), "a CSV, .csv.gz or Parquet file"
_MODEL = ("file", "name"), "a model file, as written by `gcvae train`"
"""Fields of a form that uploads a file, and the file that is expected."""

ENCODING = "text encoding, such as cp1252, latin-1 or utf-16; UTF-8 by default"

UPLOAD_TYPES = (_FORM, *TABLE_TYPES)
"""Media types of request bodies that contain a table."""

DATASET_TYPES = (*UPLOAD_TYPES, ARCHIVE_TYPE)
"""Media types of request bodies that contain a table or a database."""

MODEL_UPLOAD_TYPES = (_FORM, *MODEL_TYPES)
"""Media types of request bodies that contain a model."""


@dataclass(frozen=True)
class Upload:
    """An uploaded table, database or model.

    Attributes:
        file: Temporary file, which is deleted when it is closed.
        name: Name for the new resource; None if the request gives none.
        schema: JSON schema that the user has specified; None if there is none.
        pointer_prefix: Prefix of `name`, `schema` and `encoding` in errors: `?` for query
            parameters, `/` for fields of a form.
        is_json: Whether the file was created from the `rows` of a JSON body.
        encoding: Python's name of the text encoding; None for UTF-8.
        source: Connection from which the file was read, and the table, query or key; None if a
            client sent the file.
        notes: Warnings, for example about columns of the source that were left out.
    """

    file: BinaryIO
    name: str | None
    schema: dict[str, Any] | None
    pointer_prefix: str = "/"
    is_json: bool = False
    encoding: str | None = None
    source: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def sha256(self) -> str:
        """Returns the checksum of the file."""
        digest = hashlib.sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()

    def size_bytes(self) -> int:
        """Returns the size of the file."""
        return self.file.seek(0, os.SEEK_END)

    def chunks(self) -> Iterator[bytes]:
        """Yields the bytes of the file from its start."""
        self.file.seek(0)
        while chunk := self.file.read(CHUNK_BYTES):
            yield chunk


@asynccontextmanager
async def received(
    request: Request,
    settings: ServiceSettings,
    readable: tuple[str, ...] = UPLOAD_TYPES,
    max_files: int = 1,
) -> AsyncIterator[Upload]:
    """Context manager that receives a table, database or model as a form or as the body itself.

    Args:
        readable: Accepted media types.
        max_files: Maximum number of files in a form; several files are packed into one ZIP file, in
            which each file is a table named like the file.

    Raises:
        MediaTypeError: The body has another media type.
        RequestError: The form has no file, or unknown fields.
        TableError: The encoding is unknown. In a form with several files: a file's name is not
            valid for a table (`orders.csv` is valid), or two files have the same table name.
        TooLargeError: The body exceeds its limit; raised while it is read.
    """
    content_type = request.headers.get("Content-Type")
    essence = (content_type or "").split(";")[0].strip().lower()
    if essence == _FORM:
        expected = _MODEL if readable == MODEL_UPLOAD_TYPES else _TABLE
        async with _form(request, settings, max_files) as form:
            refuse_in_query(request)
            items = form.multi_items()
            files = [f for name, f in items if name == "file" and isinstance(f, UploadFile)]
            if max_files == 1 or len(files) < 2:
                yield _from_form(items, expected)
                return
            others = [(name, value) for name, value in items if name != "file"]
            with tempfile.TemporaryFile(prefix="gcvae-upload-") as joined:
                upload = _from_form([*others, ("file", UploadFile(joined))], expected)
                await run_in_threadpool(_join, files, joined)
                yield upload
    elif essence in readable:
        with tempfile.TemporaryFile(prefix="gcvae-upload-") as file:
            await _receive_body(request, file)
            query = request.query_params
            yield Upload(
                file,
                query.get("name"),
                _read_schema(query.get("schema"), "?"),
                "?",
                encoding=checked_encoding(query.get("encoding"), "?encoding"),
            )
    else:
        raise MediaTypeError(content_type, readable)


@asynccontextmanager
async def _form(
    request: Request, settings: ServiceSettings, max_files: int
) -> AsyncIterator[FormData]:
    try:
        form = await request.form(max_files=max_files, max_part_size=settings.max_json_bytes)
    except HTTPException as error:
        if max_files == 1 or "Too many files" not in str(error.detail):
            raise
        problem = Problem("too many files", "/file", expected=f"at most {max_files}")
        raise TableLimitError(
            f"the form has more than {max_files} files", max_files, "max_tables", problem
        ) from None
    try:
        yield form
    finally:
        await form.close()


def refuse_in_query(request: Request) -> None:
    """Checks that the query has no `encoding`, which only applies to a body that is a table file.

    Raises:
        RequestError: The query has the parameter `encoding`.
    """
    if "encoding" in request.query_params:
        message = "encoding as a query parameter is only for a body that is a table"
        expected = "the form field encoding; JSON is always UTF-8"
        raise RequestError(Problem(message, "?encoding", expected=expected))


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


def _from_form(
    items: list[tuple[str, UploadFile | str]], expected: tuple[tuple[str, ...], str]
) -> Upload:
    fields = dict(items)
    refuse_names((name for name, _ in items), expected[0], "field", "/")
    file = fields.get("file")
    if not isinstance(file, UploadFile):
        problem = Problem("the form contains no file", "/file", expected=expected[1])
        raise RequestError(problem)
    name = _text(fields, "name")
    if name is None and file.filename:
        name = plain_name(file.filename)
    schema = _read_schema(_text(fields, "schema"))
    encoding = checked_encoding(_text(fields, "encoding"), "/encoding")
    return Upload(file.file, name, schema, encoding=encoding)


def _join(files: list[UploadFile], target: BinaryIO) -> None:
    def copied(file: UploadFile) -> Callable[[io.RawIOBase], object]:
        return lambda sink: shutil.copyfileobj(file.file, sink, CHUNK_BYTES)

    names = [PurePath((file.filename or "").replace("\\", "/")).name for file in files]
    of_tables = files_by_table(names)
    by_name = dict(zip(names, files, strict=True))
    write_archive(target, [(name, copied(by_name[name])) for _, name in sorted(of_tables.items())])


def _text(fields: dict[str, UploadFile | str], name: str) -> str | None:
    value = fields.get(name)
    if isinstance(value, UploadFile):
        raise RequestError(Problem("is a file", f"/{name}", expected="a plain form field"))
    return value


def plain_name(filename: str, endings: Sequence[str] = ()) -> str:
    r"""Returns the name of a file without folders and extensions.

    Args:
        endings: More extensions to remove. Those of uploads, such as .csv, are always removed.

    >>> plain_name("C:\\data\\adult.train.csv.gz"), plain_name("../models/adult.gcvae")
    ('adult.train', 'adult')
    """
    name = PurePath(filename.replace("\\", "/")).name
    for ending in (".zip", ".gz", ".csv", ".parquet", ".gcvae", *endings):
        name = name.removesuffix(ending)
    return name


def _read_schema(text: str | None, prefix: str = "/") -> dict[str, Any] | None:
    if text is None:
        return None
    pointer = f"{prefix}schema"
    schema = read_json(text.encode("utf-8", "surrogatepass"), "the schema", pointer)
    if not isinstance(schema, dict):
        raise RequestError(
            Problem("the schema is not an object", pointer, expected='{"columns": [...]}')
        )
    return schema
