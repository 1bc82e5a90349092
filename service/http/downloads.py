"""Stored bytes on their way out: streamed, and verified before the last of them leaves."""

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
    """Bytes that can be read whole or in part."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def sha256(self) -> str: ...

    def stream(self) -> Iterator[bytes]:
        """All bytes, verified at their end. Raises: as `Store.stream`."""
        ...

    def stream_range(self, start: int, end: int) -> Iterator[bytes]:
        """The bytes from `start` up to, but without, `end`. Raises: as `Store.stream_range`."""
        ...


@dataclass(frozen=True)
class StoredFile:
    """The bytes under one key."""

    store: Store
    key: str
    size_bytes: int
    sha256: str

    def stream(self) -> Iterator[bytes]:
        """All bytes."""
        return self.store.stream(self.key, self.sha256)

    def stream_range(self, start: int, end: int) -> Iterator[bytes]:
        """Some of the bytes."""
        return self.store.stream_range(self.key, start, end)


@dataclass(frozen=True)
class StoredPart:
    """A run of the bytes under one key: a table of a ZIP file that packs none."""

    store: Store
    key: str
    offset: int
    size_bytes: int
    sha256: str

    def stream(self) -> Iterator[bytes]:
        """All bytes. Raises: CorruptedError, before the last of them is read on."""
        digest = hashlib.sha256()
        for chunk in self.stream_range(0, self.size_bytes):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != self.sha256:
            raise CorruptedError(self.key, self.sha256, digest.hexdigest())

    def stream_range(self, start: int, end: int) -> Iterator[bytes]:
        """Some of the bytes."""
        return self.store.stream_range(self.key, self.offset + start, self.offset + end)


@dataclass(frozen=True)
class StoredShards:
    """The bytes of the shards that a manifest lists, one after the other."""

    store: Store
    manifest: Manifest

    @property
    def size_bytes(self) -> int:
        """The size of all shards' bytes."""
        return self.manifest.size_bytes

    @property
    def sha256(self) -> str:
        """The checksum of all shards' bytes."""
        return self.manifest.sha256

    def stream(self) -> Iterator[bytes]:
        """All bytes."""
        return self.manifest.stream(self.store)

    def stream_range(self, start: int, end: int) -> Iterator[bytes]:
        """Some of the bytes."""
        return self.manifest.stream_range(self.store, start, end)


@dataclass(frozen=True)
class MadeFile:
    """Bytes that were made for this answer."""

    content: bytes

    @property
    def size_bytes(self) -> int:
        """Their number."""
        return len(self.content)

    @property
    def sha256(self) -> str:
        """Their checksum."""
        return hashlib.sha256(self.content).hexdigest()

    def stream(self) -> Iterator[bytes]:
        """All bytes."""
        return self.stream_range(0, len(self.content))

    def stream_range(self, start: int, end: int) -> Iterator[bytes]:
        """Some of the bytes."""
        for first in range(start, end, _CHUNK_BYTES):
            yield self.content[first : min(end, first + _CHUNK_BYTES)]


def stored_table(store: Store, result: Result) -> Content:
    """The table that a job made.

    Raises:
        MissingObjectError, CorruptedError: its manifest is not there, or is another.
    """
    if result.manifest_sha256 is None:
        return StoredFile(store, result.object_key, result.size_bytes, result.sha256)
    return StoredShards(store, Manifest.read(store, result.object_key, result.manifest_sha256))


def download(request: Request, content: Content, *, media_type: str, filename: str) -> Response:
    """The bytes as a file, or the range of them that is asked; 304 to a reader who has them.

    A range is for going on where a transfer broke off. The whole is verified as it leaves; of a
    range the reader verifies what it has joined, by the checksum that is the entity tag.

    Raises:
        MissingObjectError: the store does not have them.
        HTTPException: 416, the range lies behind the last byte.
    """
    headers = {
        "ETag": f'"{content.sha256}"',
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": attachment(filename),
    }
    if matches(request.headers.get("If-None-Match"), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    asked = asked_range(request.headers, headers["ETag"], content.size_bytes)
    if asked is None:
        chunks, status = hold_back_last(content.stream()), 200
        headers["Content-Length"] = str(content.size_bytes)
    else:
        start, end = asked
        chunks, status = content.stream_range(start, end), 206
        headers["Content-Length"] = str(end - start)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{content.size_bytes}"
    return StreamingResponse(chunks, status, headers, media_type)


def asked_range(headers: Mapping[str, str], tag: str, size_bytes: int) -> tuple[int, int] | None:
    """(start, end) of the bytes that a Range header asks; None where the whole is to be sent.

    Several ranges, other units and nonsense are answered by the whole, as RFC 9110 allows, and so
    is a range of other bytes than these (If-Range).

    Raises:
        HTTPException: 416, the range lies behind the last byte.

    >>> asked_range({"Range": "bytes=2-"}, '"tag"', 10), asked_range({"Range": "bytes=-3"}, "", 10)
    ((2, 10), (7, 10))
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


def hold_back_last(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same chunks, each when the next is there.

    The store verifies after its last chunk: damaged bytes so break the transfer off before its
    announced length is reached, and no reader takes them for whole.
    """
    held: bytes | None = None
    for chunk in chunks:
        if held is not None:
            yield held
        held = chunk
    if held is not None:
        yield held


def attachment(filename: str) -> str:
    """Content-Disposition of a file to be saved, whatever letters are in its name (RFC 6266).

    >>> attachment("Löhne.csv")
    'attachment; filename="L_hne.csv"; filename*=UTF-8\\'\\'L%C3%B6hne.csv'
    """
    plain = "".join(
        c if c.isascii() and c.isprintable() and c not in '"\\/' else "_" for c in filename
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"
