"""Sessions of pages: a cookie that scripts can not read, and a mark that other sites can not send.

The cookie goes with requests of our own pages only (SameSite=Strict), and to the API alone. Beside
it every change needs a header that a form of another site has no means to send.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request, Response

from service.access import SAFE_METHODS
from service.errors import ForeignSiteError

SESSION_PATH = "/v1/session"
COOKIE = "gcvae_session"
"""Begin of the cookie's name. A browser sends a host's cookies to all its ports: the port follows,
so that who signs in to one service does not sign out of another of that host."""
MARK = "X-Gcvae-Page"


def session_of(request: Request) -> str | None:
    """The token of the page's session; None where it has none."""
    return request.cookies.get(cookie_name(request))


def cookie_name(request: Request) -> str:
    """The name of this service's cookie: by the port that the browser has asked."""
    port = request.url.port
    return COOKIE if port is None else f"{COOKIE}_{port}"


def refuse_forged(request: Request) -> None:
    """Let a request by session pass that our own pages sent.

    Raises:
        ForeignSiteError: it changes something and lacks the mark.
    """
    if request.method not in SAFE_METHODS and MARK not in request.headers:
        raise ForeignSiteError(
            f"requests with a session cookie that change something must have the header {MARK}: 1"
        )


def set_cookie(request: Request, response: Response, token: str, seconds: int) -> None:
    """Give the page its token."""
    response.set_cookie(
        *(cookie_name(request), token),
        max_age=seconds,
        path="/v1",
        secure=is_secure(request),
        httponly=True,
        samesite="strict",
    )


def take_cookie(request: Request, response: Response) -> None:
    """Take the token back."""
    response.delete_cookie(
        cookie_name(request),
        path="/v1",
        secure=is_secure(request),
        httponly=True,
        samesite="strict",
    )


def is_secure(request: Request) -> bool:
    """True where the page came by https, to us or to a proxy before us: its Origin says so."""
    origin = urlsplit(request.headers.get("Origin", ""))
    return "https" in (request.url.scheme, origin.scheme)
