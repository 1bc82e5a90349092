"""Limits on the size of request bodies, checked by Content-Length and again while receiving."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import TooLargeError
from service.http.sessions import SIGN_ON_PATH
from service.settings import ServiceSettings

TABLE_TYPES = (
    "text/csv",
    "application/gzip",
    "application/x-gzip",
    "application/vnd.apache.parquet",
    "application/octet-stream",
)
"""Media types of request bodies that are a table. Its first bytes, not the media type, determine
its format."""

ARCHIVE_TYPE = "application/zip"
"""Media type of a database, which is a ZIP file with one file for each table."""

ARTIFACT_TYPE = "application/vnd.gcvae.model"
MODEL_TYPES = ("application/octet-stream", ARTIFACT_TYPE)
"""Media types of request bodies that are a model file."""


class BodyLimits:
    """Middleware that raises TooLargeError while a route reads a request body that is too long."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        field = limiting_field(scope["path"], headers.get("Content-Type", ""))
        limit = getattr(self.settings, field)
        announced = headers.get("Content-Length", "")
        n_announced = int(announced) if announced.isdecimal() else 0
        n_received = 0

        async def receive_counted() -> Message:
            nonlocal n_received
            if n_announced > limit:
                raise TooLargeError(f"the body has {n_announced} bytes", limit, field)
            message = await receive()
            n_received += len(message.get("body", b""))
            if n_received > limit:
                raise TooLargeError(f"the body has more than {limit} bytes", limit, field)
            return message

        await self.app(scope, receive_counted, send)


def limiting_field(path: str, content_type: str) -> str:
    """Returns the name of the setting that limits the size of a request's body.

    JSON has a lower limit than files, because it is held in memory. Bodies of sign-on requests have
    the lowest limit, because these requests need no API key.

    Args:
        path: URL path of the request.
        content_type: Content-Type header of the request; empty if it is missing.

    >>> limiting_field("/v1/models", "application/json; charset=utf-8")
    'max_json_bytes'
    >>> limiting_field("/v1/datasets", "text/csv"), limiting_field("/v1/sign-on", "text/csv")
    ('max_upload_bytes', 'max_head_bytes')
    """
    if path.startswith(SIGN_ON_PATH):
        return "max_head_bytes"
    return "max_upload_bytes" if is_file(content_type) else "max_json_bytes"


def is_file(content_type: str) -> bool:
    """Returns whether a body of this media type is a table, a model, or a form that uploads one."""
    essence = content_type.split(";")[0].strip().lower()
    return essence.startswith("multipart/") or essence in (*TABLE_TYPES, *MODEL_TYPES, ARCHIVE_TYPE)
