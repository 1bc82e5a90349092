"""Downloads of stored files, streamed and verified by checksum before the last chunk is sent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from catalog.records import Result
from models_store import Store
from models_store.manifests import Manifest
from service.http.etags import matches

_CHUNK_BYTES = 1 << 20
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True)
class Content:
    """Bytes of a download, which can be read completely or as a range.

    Attributes:
        size_bytes: Number of bytes.
        sha256: Checksum of all bytes, hexadecimal.
        stream: Function that yields all bytes; it raises CorruptedError at their end if their
            checksum is wrong.
        stream_range: Function that yields the bytes `start` to `end - 1`, counted from 0, without
            verifying a checksum.
    """

    size_bytes: int
    sha256: str
    stream: Callable[[], Iterator[bytes]]
    stream_range: Callable[[int, int], Iterator[bytes]]


def stored_file(store: Store, key: str, size_bytes: int, sha256: str) -> Content:
    """Returns the content of one file in the store."""
    stream = partial(store.stream, key, sha256)
    return Content(size_bytes, sha256, stream, partial(store.stream_range, key))


def stored_part(store: Store, key: str, offset: int, size_bytes: int, sha256: str) -> Content:
    """Returns the content of a part of a stored file: a table of an uncompressed ZIP file.

    Args:
        offset: Index of the part's first byte in the file.
        sha256: Checksum of the part.
    """

    def stream_range(start: int, end: int) -> Iterator[bytes]:
        return store.stream_range(key, offset + start, offset + end)

    stream = partial(store.stream_range, key, offset, offset + size_bytes, sha256)
    return Content(size_bytes, sha256, stream, stream_range)


def stored_result(store: Store, result: Result) -> Content:
    """Returns the stored content of a job's result, whether one file or several shards.

    Raises:
        MissingObjectError, CorruptedError: The manifest (list of shards) is missing or damaged.
    """
    if result.manifest_sha256 is None:
        return stored_file(store, result.object_key, result.size_bytes, result.sha256)
    manifest = Manifest.read(store, result.object_key, result.manifest_sha256)
    streams = partial(manifest.stream, store), partial(manifest.stream_range, store)
    return Content(manifest.size_bytes, manifest.sha256, *streams)


def generated_file(content: bytes) -> Content:
    """Returns content that was generated for this response and is held in memory."""

    def stream_range(start: int, end: int) -> Iterator[bytes]:
        for first in range(start, end, _CHUNK_BYTES):
            yield content[first : min(end, first + _CHUNK_BYTES)]

    digest = hashlib.sha256(content).hexdigest()
    return Content(len(content), digest, partial(stream_range, 0, len(content)), stream_range)


def download(request: Request, content: Content, *, media_type: str, filename: str) -> Response:
    """Returns a response that sends the content, or only the range that the request asks for.

    If the client has the current content (If-None-Match), the response is 304 without content.
    Ranges serve to resume a download. The complete content is verified while it is sent; a client
    that joins ranges can verify them with the entity tag, which is the checksum.

    Args:
        filename: Name under which a browser saves the file.

    Raises:
        MissingObjectError: The store does not contain the file.
        HTTPException: 416, the range starts after the last byte.
    """
    headers = {
        "ETag": f'"{content.sha256}"',
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": attachment(filename),
    }
    if matches(request.headers.get("If-None-Match"), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    requested = requested_range(request.headers, headers["ETag"], content.size_bytes)
    if requested is None:
        chunks, status = delay_last_chunk(content.stream()), 200
        headers["Content-Length"] = str(content.size_bytes)
    else:
        start, end = requested
        chunks, status = content.stream_range(start, end), 206
        headers["Content-Length"] = str(end - start)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{content.size_bytes}"
    return StreamingResponse(chunks, status, headers, media_type)


def requested_range(
    headers: Mapping[str, str], tag: str, size_bytes: int
) -> tuple[int, int] | None:
    """Returns (start, end) of a Range header, `end` exclusive; None if all bytes are to be sent.

    As RFC 9110 allows, all bytes are sent if the header is missing or malformed or has several
    ranges or other units, or if If-Range names another entity tag.

    Args:
        tag: Entity tag of the content.
        size_bytes: Size of the content.

    Raises:
        HTTPException: 416, the range starts after the last byte.

    >>> requested_range({"Range": "bytes=2-"}, '"tag"', 10)
    (2, 10)
    >>> requested_range({"Range": "bytes=-3"}, "", 10)
    (7, 10)
    """
    found = _RANGE.fullmatch(headers.get("Range", "").replace(" ", ""))
    if found is None or headers.get("If-Range", tag) != tag or found[0] == "bytes=-":
        return None
    first, last = found[1], found[2]
    if not first:
        start, end = max(size_bytes - int(last), 0), size_bytes
    else:
        start, end = int(first), min(int(last) + 1 if last else size_bytes, size_bytes)
        if last and int(last) < start:
            return None
    if start >= size_bytes:
        detail = f"the range begins at byte {start} of {size_bytes}"
        raise HTTPException(416, detail, {"Content-Range": f"bytes */{size_bytes}"})
    return start, end


def delay_last_chunk(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the chunks unchanged, but each only after the next one has been read.

    `chunks` raises an exception after the last chunk if the checksum is wrong. The last chunk is
    then not sent, so that the response is shorter than announced and no client takes it for
    complete.
    """
    held: bytes | None = None
    for chunk in chunks:
        if held is not None:
            yield held
        held = chunk
    if held is not None:
        yield held


def attachment(filename: str) -> str:
    r"""Returns a Content-Disposition header for a file with any name (RFC 6266).

    >>> attachment("Löhne.csv")
    'attachment; filename="L_hne.csv"; filename*=UTF-8\'\'L%C3%B6hne.csv'
    """
    plain = "".join(
        c if c.isascii() and c.isprintable() and c not in '"\\/' else "_" for c in filename
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"
