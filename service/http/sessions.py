"""Sessions of web pages: a cookie that scripts cannot read, and a header against forged requests.

The browser sends the cookie only to the API and only from our own pages (SameSite=Strict). In
addition, each change requires a header that a form on another site cannot set.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Response

from service.access import SAFE_METHODS
from service.errors import ForeignSiteError

SESSION_PATH = "/v1/session"
COOKIE = "gcvae_session"
"""Prefix of the cookie's name; the port follows, because browsers send a cookie to all ports of a
host, and services on different ports need separate sessions."""
SIGN_ON_PATH = "/v1/sign-on"
SIGN_ON_SECONDS = 600
"""Time for which a person may take to sign in at the provider."""
SIGN_ON_COOKIE = "gcvae_sign_on"
"""Prefix of the name of the cookie with the state of a sign-on."""
MARK = "X-Gcvae-Page"
"""Header that our pages send with each change."""


def session_of(request: Request) -> str | None:
    """Returns the session token in the request's cookie, or None."""
    return request.cookies.get(cookie_name(request))


def cookie_name(request: Request, prefix: str = COOKIE) -> str:
    """Returns the name of the session cookie, which contains the port of the request."""
    port = request.url.port
    return prefix if port is None else f"{prefix}_{port}"


def refuse_forged(request: Request) -> None:
    """Checks that a request with a session cookie comes from our own pages.

    Raises:
        ForeignSiteError: The request may change data and lacks the header X-Gcvae-Page.
    """
    if request.method not in SAFE_METHODS and MARK not in request.headers:
        raise ForeignSiteError(
            f"requests of a page that change something must have the header {MARK}: 1"
        )


def set_cookie(request: Request, response: Response, token: str, seconds: int) -> None:
    """Adds a cookie with the session token to the response, valid for this many seconds."""
    response.set_cookie(value=token, max_age=seconds, **_cookie(request))


def take_cookie(request: Request, response: Response) -> None:
    """Makes the response delete the session cookie in the browser."""
    response.delete_cookie(**_cookie(request))


def set_sign_on_cookie(request: Request, response: Response, state: str) -> None:
    """Adds a cookie with the state of a sign-on to the response."""
    response.set_cookie(value=state, max_age=SIGN_ON_SECONDS, **_cookie(request, SIGN_ON_COOKIE))


def take_sign_on_cookie(request: Request, response: Response) -> str | None:
    """Makes the response delete the cookie with the state of a sign-on, and returns the state."""
    response.delete_cookie(**_cookie(request, SIGN_ON_COOKIE))
    return request.cookies.get(cookie_name(request, SIGN_ON_COOKIE))


def _cookie(request: Request, prefix: str = COOKIE) -> dict[str, Any]:
    path = "/v1" if prefix == COOKIE else SIGN_ON_PATH
    how = {"path": path, "httponly": True, "samesite": "strict"}
    return how | {"key": cookie_name(request, prefix), "secure": is_secure(request)}


def is_secure(request: Request) -> bool:
    """Returns whether the page was loaded by https, directly or (by its Origin) through a proxy."""
    origin = urlsplit(request.headers.get("Origin", ""))
    return "https" in (request.url.scheme, origin.scheme)
