"""The OpenAPI page at /docs, from the assets in an installed package: no outside host is asked."""

from __future__ import annotations

from importlib.resources import files

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

ASSETS = "/docs/assets"
# The page can not ask an outside host, whatever a later version of the assets may try.
_POLICY = "default-src 'self' 'unsafe-inline' data:"


def install(app: FastAPI) -> None:
    """Serve the page and its assets."""
    folder = files("fastapi_offline") / "static"
    app.mount(ASSETS, StaticFiles(directory=str(folder)), name="docs-assets")

    @app.get("/docs", include_in_schema=False)
    async def show_docs() -> HTMLResponse:
        page = get_swagger_ui_html(
            openapi_url=str(app.openapi_url),
            title=f"{app.title} – REST API",
            swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{ASSETS}/favicon.png",
            swagger_ui_parameters={"validatorUrl": None},
        )
        page.headers["Content-Security-Policy"] = _POLICY
        return page
