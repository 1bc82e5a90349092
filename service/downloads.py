"""Stored bytes on their way out: streamed, and verified before the last of them leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from models_store import Store
from service.etags import matches


def download(
    request: Request,
    store: Store,
    *,
    key: str,
    sha256: str,
    size_bytes: int,
    media_type: str,
    filename: str,
) -> Response:
    """The bytes under a key as a file; 304 to a reader who has them.

    Raises:
        MissingObjectError: the store does not have them.
    """
    headers = {
        "ETag": f'"{sha256}"',
        "Cache-Control": "private, no-cache",
        "Content-Disposition": attachment(filename),
    }
    if matches(request.headers.get("If-None-Match"), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    blocks = hold_back_last(store.stream(key, sha256))
    headers["Content-Length"] = str(size_bytes)
    return StreamingResponse(blocks, headers=headers, media_type=media_type)


def hold_back_last(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same blocks, each when the next is there.

    The store verifies after its last block: damaged bytes so break the transfer off before its
    announced length is reached, and no reader takes them for whole.
    """
    held: bytes | None = None
    for block in blocks:
        if held is not None:
            yield held
        held = block
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
