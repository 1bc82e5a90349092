"""The pages at `/`: one document that draws what the API says, and the files that it needs.

Every page has a path of its own, so that it can be sent to somebody: /datasets/ds_…, /models/mdl_….
All of them are the same document. It asks no outside host, and brings no script or style inside.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

FILES = Path(__file__).parent / "static"
GUIDE = Path(__file__).parent / "guide"
"""Where `make docs` builds the documentation."""
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
)
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # asked again by its tag: a new version of the service shows
}


def install(app: FastAPI) -> None:
    """Serve the pages and their files."""
    app.router.routes.append(Mount(ASSETS, _Files(directory=FILES), name="assets"))
    app.router.routes.extend(Route(path, _page, include_in_schema=False) for path in PATHS)
    app.router.default = _Nowhere(app.router.default)


class _Nowhere:
    """An address that leads nowhere: people get our page, which says so, and programs a problem."""

    def __init__(self, otherwise: ASGIApp) -> None:
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _is_for_people(Request(scope)):
            await page_document(404)(scope, receive, send)
        else:
            await self._otherwise(scope, receive, send)


def _is_for_people(request: Request) -> bool:
    is_of_pages = request.method in ("GET", "HEAD") and not request.url.path.startswith("/v1")
    return is_of_pages and "text/html" in request.headers.get("Accept", "")


async def _page(request: Request) -> Response:
    return page_document()


def page_document(status: int = 200) -> Response:
    """The document of every page, which draws what stands at its path. It links to the guide once
    that is built.
    """
    document = (FILES / "page.html").read_text(encoding="utf-8")
    if guide_built_at() is None:
        document = document.replace(_GUIDE_LINK, "")
    return HTMLResponse(document, status, _HEADERS)


def guide_built_at() -> int | None:
    """When the guide was built, in nanoseconds; None where it was not, or not to its end."""
    try:
        return (GUIDE / "search/search_index.json").stat().st_mtime_ns  # written last
    except FileNotFoundError:
        return None


class _Files(StaticFiles):
    """Files with the headers of our pages."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response
