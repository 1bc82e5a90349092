"""Downloads of stored bytes, streamed and verified before the last chunk is sent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from catalog.records import Result
from models_store import Store
from models_store.errors import CorruptedError
from models_store.manifests import Manifest
from service.http.etags import matches

_CHUNK_BYTES = 1 << 20
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Content(Protocol):
    """Bytes that can be read in whole or in part."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def sha256(self) -> str: ...

    def stream(self) -> Iterator[bytes]:
        """Yields all bytes, verified at their end. Raises as `Store.stream`."""
        ...

    def stream_range(self, start: int, end: int) -> Iterator[bytes]:
        """Yields the bytes from `start` to `end`, exclusive. Raises as `Store.stream_range`."""
        ...


@dataclass(frozen=True)
class StoredFile:
    """An object of the store."""

    store: Store
    key: str
    size_bytes: int
    sha256: str

    def stream(self) -> Iterator[bytes]:
        """Yields all bytes."""
        return self.store.stream(self.key, self.sha256)

    def stream_range(self, start: int, end: int) -> Iterator[bytes]:
        """Yields the bytes from `start` to `end`."""
        return self.store.stream_range(self.key, start, end)


@dataclass(frozen=True)
class StoredPart:
    """A range of an object of the store: a table of an uncompressed ZIP file."""

    store: Store
    key: str
    offset: int
    size_bytes: int
    sha256: str

    def stream(self) -> Iterator[bytes]:
        """Yields all bytes.

        Raises:
            CorruptedError: The checksum differs; raised after the last chunk.
        """
        digest = hashlib.sha256()
        for chunk in self.stream_range(0, self.size_bytes):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != self.sha256:
            raise CorruptedError(self.key, self.sha256, digest.hexdigest())

    def stream_range(self, start: int, end: int) -> Iterator[bytes]:
        """Yields the bytes from `start` to `end`."""
        return self.store.stream_range(self.key, self.offset + start, self.offset + end)


@dataclass(frozen=True)
class StoredShards:
    """The concatenated shards of a manifest."""

    store: Store
    manifest: Manifest

    @property
    def size_bytes(self) -> int:
        """Size of all shards together."""
        return self.manifest.size_bytes

    @property
    def sha256(self) -> str:
        """Checksum of all shards together."""
        return self.manifest.sha256

    def stream(self) -> Iterator[bytes]:
        """Yields all bytes."""
        return self.manifest.stream(self.store)

    def stream_range(self, start: int, end: int) -> Iterator[bytes]:
        """Yields the bytes from `start` to `end`."""
        return self.manifest.stream_range(self.store, start, end)


@dataclass(frozen=True)
class GeneratedFile:
    """Bytes that were generated for this response."""

    content: bytes

    @property
    def size_bytes(self) -> int:
        """Number of bytes."""
        return len(self.content)

    @property
    def sha256(self) -> str:
        """Checksum of the bytes."""
        return hashlib.sha256(self.content).hexdigest()

    def stream(self) -> Iterator[bytes]:
        """Yields all bytes."""
        return self.stream_range(0, len(self.content))

    def stream_range(self, start: int, end: int) -> Iterator[bytes]:
        """Yields the bytes from `start` to `end`."""
        for first in range(start, end, _CHUNK_BYTES):
            yield self.content[first : min(end, first + _CHUNK_BYTES)]


def stored_table(store: Store, result: Result) -> Content:
    """Returns the content of a job's result.

    Raises:
        MissingObjectError, CorruptedError: The manifest is missing or damaged.
    """
    if result.manifest_sha256 is None:
        return StoredFile(store, result.object_key, result.size_bytes, result.sha256)
    return StoredShards(store, Manifest.read(store, result.object_key, result.manifest_sha256))


def download(request: Request, content: Content, *, media_type: str, filename: str) -> Response:
    """Responds with the bytes as a file, with the requested range, or with 304 if the client has
    them.

    Ranges serve to resume a download. The whole file is verified while it is sent; a client that
    joins ranges verifies them by the entity tag, which is the checksum.

    Raises:
        MissingObjectError: The store lacks the bytes.
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
    """Returns (start, end) of a Range header; None if the whole content is to be sent.

    As RFC 9110 allows, the whole content is sent for several ranges, other units, malformed ranges,
    and an If-Range header with another tag.

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
    """Yields the chunks, each only when the next one has been read.

    The store verifies the checksum after its last chunk. If it is wrong, the transfer ends before
    its announced length, so that no client takes damaged bytes for a complete file.
    """
    held: bytes | None = None
    for chunk in chunks:
        if held is not None:
            yield held
        held = chunk
    if held is not None:
        yield held


def attachment(filename: str) -> str:
    r"""Returns the Content-Disposition header of a file with any name (RFC 6266).

    >>> attachment("Löhne.csv")
    'attachment; filename="L_hne.csv"; filename*=UTF-8\'\'L%C3%B6hne.csv'
    """
    plain = "".join(
        c if c.isascii() and c.isprintable() and c not in '"\\/' else "_" for c in filename
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"
