"""Sessions of web pages: a cookie that scripts cannot read, and a header against forged requests.

The browser sends the cookie only to the API and only from the service's pages (SameSite=Strict). In
addition, a request that changes something needs a header that a form on another site cannot set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Response

from service.access import SAFE_METHODS
from service.errors import ForeignSiteError

SESSION_PATH = "/v1/session"
SIGN_ON_PATH = "/v1/sign-on"
SIGN_ON_SECONDS = 600
"""Seconds that a person may take to sign in at the identity provider."""
PAGE_HEADER = "X-Gcvae-Page"
"""Header that the service's pages send with each request that may change data."""


@dataclass(frozen=True)
class Cookie:
    """A cookie that the browser sends only from the service's pages and does not show to scripts.

    Attributes:
        prefix: Prefix of the cookie's name; the port follows, because browsers send a cookie to all
            ports of a host, and services on different ports need separate sessions.
        path: URL path; the browser sends the cookie to this path and all paths below it.
    """

    prefix: str
    path: str

    def of(self, request: Request) -> str | None:
        """Returns the cookie's value in a request; None if the request has none."""
        return request.cookies.get(self._name(request))

    def set(self, request: Request, response: Response, value: str, seconds: int) -> None:
        """Adds the cookie to the response, valid for this many seconds."""
        response.set_cookie(value=value, max_age=seconds, **self._members(request))

    def delete(self, request: Request, response: Response) -> None:
        """Makes the response delete the cookie in the browser."""
        response.delete_cookie(**self._members(request))

    def _name(self, request: Request) -> str:
        port = request.url.port
        return self.prefix if port is None else f"{self.prefix}_{port}"

    def _members(self, request: Request) -> dict[str, Any]:
        how = {"path": self.path, "httponly": True, "samesite": "strict"}
        return how | {"key": self._name(request), "secure": is_secure(request)}


SESSION = Cookie("gcvae_session", "/v1")
"""Cookie with the token of a session."""
SIGN_ON = Cookie("gcvae_sign_on", SIGN_ON_PATH)
"""Cookie with the state of a sign-on."""


def refuse_forged(request: Request) -> None:
    """Checks that a request with a session cookie comes from one of the service's pages.

    Raises:
        ForeignSiteError: The request may change data and lacks the header X-Gcvae-Page.
    """
    if request.method not in SAFE_METHODS and PAGE_HEADER not in request.headers:
        raise ForeignSiteError(
            f"requests of a page that change something must have the header {PAGE_HEADER}: 1"
        )


def is_secure(request: Request) -> bool:
    """Returns whether the page that sends a request was loaded by https.

    This is so if the request's URL or its Origin header has the scheme https. A proxy may receive
    https and forward http; then only the Origin header shows https.
    """
    origin = urlsplit(request.headers.get("Origin", ""))
    return "https" in (request.url.scheme, origin.scheme)
