"""The web pages at `/`: one HTML document, whose scripts show what the API returns.

Each page has its own path, such as /datasets/ds_… or /models/mdl_…, so that it can be linked. All
paths return the same document, which loads nothing from other hosts and has no inline scripts.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

FILES = Path(__file__).parent / "static"
GUIDE = Path(__file__).parent / "guide"
"""Folder into which `make docs` writes the documentation."""
_GUIDE_LINK = '<a href="/guide/">Guide</a>'
ASSETS = "/assets"
PATHS = (
    "/",
    "/sign-in",
    "/datasets",
    "/datasets/{rest:path}",
    "/models",
    "/models/{rest:path}",
    "/jobs",
    "/jobs/{rest:path}",
    "/work",
    "/webhooks",
    "/connections",
    "/schedules",
)
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # revalidated, so that updates show
}


def install(app: FastAPI) -> None:
    """Adds the web pages and their scripts and styles to the application."""
    app.router.routes.append(Mount(ASSETS, _Files(directory=FILES), name="assets"))
    app.router.routes.extend(Route(path, _page, include_in_schema=False) for path in PATHS)
    app.router.default = _UnknownPath(app.router.default)


class _UnknownPath:
    """Responds to unknown paths: with a web page to browsers, with problem+json to programs."""

    def __init__(self, otherwise: ASGIApp) -> None:
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._otherwise
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            takes_html = "text/html" in Headers(scope=scope).get("Accept", "")
            if takes_html and not Request(scope).url.path.startswith("/v1"):
                answer = page_document(404)
        await answer(scope, receive, send)


async def _page(request: Request) -> Response:
    return page_document()


def page_document(status: int = 200) -> Response:
    """Returns the HTML document that all web pages share; its script shows the page for the path.

    It contains a link to the documentation only if the documentation is built.
    """
    document = (FILES / "page.html").read_text(encoding="utf-8")
    if guide_built_at() is None:
        document = document.replace(_GUIDE_LINK, "")
    return HTMLResponse(document, status, _HEADERS)


def guide_built_at() -> int | None:
    """Returns when the documentation was built, in ns since 1970; None if it is not complete."""
    try:
        return (GUIDE / "search/search_index.json").stat().st_mtime_ns  # written last
    except FileNotFoundError:
        return None


class _Files(StaticFiles):
    """Scripts and styles of the web pages, with the same security headers as the pages."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Returns a file with the security headers of the web pages."""
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response
