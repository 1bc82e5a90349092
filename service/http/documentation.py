"""API documentation at /docs (Swagger UI), with scripts and styles served from this machine.

The page replaces FastAPI's, whose inline script the content security policy would block.
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles

ASSETS = "/docs/assets"
_START = "/docs/start.js"
# The browser blocks requests to other hosts, even if a later Swagger UI version makes some.
_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="{assets}/favicon.png">
<link rel="stylesheet" href="{assets}/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="{assets}/swagger-ui-bundle.js"></script>
<script src="{start}"></script>
</body>
</html>
"""


def install(app: FastAPI) -> None:
    """Adds the page /docs and its scripts and styles to the application."""
    folder = files("fastapi_offline") / "static"
    app.mount(ASSETS, StaticFiles(directory=str(folder)), name="docs-assets")
    title = escape(f"{app.title} – REST API")
    page = _PAGE.format(title=title, assets=ASSETS, start=_START)
    options = {"url": app.openapi_url, "dom_id": "#swagger-ui", "deepLinking": True}
    script = f"SwaggerUIBundle({json.dumps({**options, 'validatorUrl': None})});\n"

    @app.get("/docs", include_in_schema=False)
    async def show_docs() -> HTMLResponse:
        return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})

    @app.get(_START, include_in_schema=False)
    async def start_docs() -> Response:
        return Response(script, media_type="text/javascript")
