"""The documentation at /guide. If `make docs` has not built it, the response is a 404 that says so.

The documentation's pages contain inline scripts and styles. The content security policy allows
exactly these, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from service.site import pages

PLACE = "/guide"
"""URL path of the documentation."""
_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_STYLE = re.compile(rb"<style>(.*?)</style>|\sstyle=\"([^\"]*)\"", re.DOTALL)


def install(app: FastAPI) -> None:
    """Adds the documentation under /guide to the application, even if its files are built later."""
    app.router.routes.append(
        Mount(PLACE, _Guide(directory=pages.GUIDE, html=True, check_dir=False))
    )


class _Guide(StaticFiles):
    """Files of the documentation; their content security policy allows their inline scripts."""

    async def check_config(self) -> None:
        """Does nothing. The base class would raise an error if the folder does not exist.

        A missing folder is not an error, because the documentation may be built while the service
        runs.
        """

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Returns a file of the documentation, with its content security policy.

        Raises:
            HTTPException: 404, the documentation is not built or does not contain the file.
        """
        built_at = pages.guide_built_at()
        if built_at is None:
            if "text/html" in Headers(scope=scope).get("Accept", ""):
                return pages.page_document(404)  # a page that explains it
            detail = "the guide has not been built; run `make docs`"
            raise HTTPException(404, detail)
        response = await super().get_response(path, scope)
        response.headers["Content-Security-Policy"] = policy_of(pages.GUIDE, built_at)
        response.headers["Cache-Control"] = "no-cache"
        return response


@lru_cache(maxsize=1)
def policy_of(folder: Path, built_at: int) -> str:
    """Returns a content security policy that allows inline scripts and styles of a folder's pages.

    Args:
        built_at: Time of the build; only a cache key, so that a new build renews the policy.
    """
    scripts: set[bytes] = set()
    styles: set[bytes] = set()
    for page in folder.rglob("*.html"):
        content = page.read_bytes()
        scripts.update(_SCRIPT.findall(content))
        styles.update(block or inline for block, inline in _STYLE.findall(content))
    return (
        f"default-src 'self'; script-src 'self' {_hashes(scripts)}; "
        f"style-src 'self' 'unsafe-hashes' {_hashes(styles)}; img-src 'self' data:; "
        "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


def _hashes(texts: set[bytes]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text).digest()).decode() for text in sorted(texts))
    return " ".join(f"'sha256-{digest}'" for digest in digests)
