"""Sessions of pages: a cookie that scripts can not read, and a header that other sites can not
send.

The cookie is sent only to the API and only by our own pages (SameSite=Strict). In addition, every
change requires a header that a form of another site can not set.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request, Response

from service.access import SAFE_METHODS
from service.errors import ForeignSiteError

SESSION_PATH = "/v1/session"
COOKIE = "gcvae_session"
"""Prefix of the cookie's name, which ends with the port. Browsers share the cookies of all ports of
a host, and the services on it need separate sessions."""
MARK = "X-Gcvae-Page"


def session_of(request: Request) -> str | None:
    """Returns the session token of a request, or None."""
    return request.cookies.get(cookie_name(request))


def cookie_name(request: Request) -> str:
    """Returns the name of this service's cookie, with the port of the request."""
    port = request.url.port
    return COOKIE if port is None else f"{COOKIE}_{port}"


def refuse_forged(request: Request) -> None:
    """Checks that a request with a session comes from our own pages.

    Raises:
        ForeignSiteError: The request changes something and lacks the header.
    """
    if request.method not in SAFE_METHODS and MARK not in request.headers:
        raise ForeignSiteError(
            f"requests with a session cookie that change something must have the header {MARK}: 1"
        )


def set_cookie(request: Request, response: Response, token: str, seconds: int) -> None:
    """Adds the session cookie to the response."""
    response.set_cookie(
        *(cookie_name(request), token),
        max_age=seconds,
        path="/v1",
        secure=is_secure(request),
        httponly=True,
        samesite="strict",
    )


def take_cookie(request: Request, response: Response) -> None:
    """Deletes the session cookie."""
    response.delete_cookie(
        cookie_name(request),
        path="/v1",
        secure=is_secure(request),
        httponly=True,
        samesite="strict",
    )


def is_secure(request: Request) -> bool:
    """Whether the page was loaded by https, directly or through a proxy, according to its
    Origin.
    """
    origin = urlsplit(request.headers.get("Origin", ""))
    return "https" in (request.url.scheme, origin.scheme)
