"""Authentication, rate limits and scopes, which are checked before a request body is read."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catalog.access.audit import ANYONE
from catalog.records import DEFAULT_WORKSPACE, Caller, Person
from catalog.records import Scope as KeyScope
from service.access import SAFE_METHODS, is_address, refuse_foreign_host, refuse_foreign_page
from service.errors import MissingScopeError, UnauthorizedError
from service.http.body_limits import is_file
from service.http.problems import answer_before_routes
from service.http.rate_limits import FILE_COST, Allowance, RateLimits
from service.http.sessions import SESSION, SESSION_PATH, SIGN_ON_PATH, refuse_forged
from service.keyring import KeyRing
from service.settings import ServiceSettings

_ADMIN_PATHS = ("/metrics", "/v1/audit", "/v1/work", "/v1/webhooks")
"""Paths that, with all paths below them, require the scope `admin`. `/metrics` and `/v1/work` show
all workspaces, and webhooks send data out."""
_CONNECTIONS = "/v1/connections"
"""Creating and deleting connections requires the scope `admin`; other calls `read` or `write`."""


class Gate:
    """Middleware that refuses a request, or stores its workspace and caller in `request.state`.

    If the service has API keys or sign-on, each API call needs a key, or the session of a page.
    Otherwise the Host header is checked, because another site could make its host name resolve to
    this machine. Health checks and pages need no key; the pages themselves contain no data.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings, ring: KeyRing) -> None:
        self.app = app
        self._settings = settings
        self._ring = ring
        self._rates = RateLimits(settings.max_requests_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        try:
            caller, allowance = await self._authorise(request)
        except Exception as error:  # `answer_before_routes` raises unexpected ones again
            if isinstance(error, UnauthorizedError) and self._settings.oidc_issuer != "":
                error.sign_on = SIGN_ON_PATH
            await answer_before_routes(request, error)(scope, receive, send)
            return
        if not self._is_sign_on(request):  # the sign-on's route sets these members
            scope["state"] |= {
                "workspace": DEFAULT_WORKSPACE if caller is None else caller.workspace,
                "actor": ANYONE if caller is None else caller.id,
                "caller": caller,
            }
        await self.app(
            scope, receive, send if allowance is None else _with_rate_headers(allowance, send)
        )

    async def _authorise(self, request: Request) -> tuple[Caller | None, Allowance | None]:
        """Authenticates a request. Returns (caller, state of the caller's rate limits).

        The caller is None if the request needs no key or session. Such requests are not counted
        (the state is None), except those to sign on, which are counted by IP address.
        """
        path = request.scope["path"]
        if not (path.startswith("/v1/") or path in ("/v1", "/metrics")):
            # DNS rebinding needs a host name. Health checks by IP address skip the query for keys,
            # so that they are answered even if the database does not respond.
            if not (is_address(request) or await self._ring.keys_exist()):
                refuse_foreign_host(request, self._settings)
            return None, None
        if self._is_sign_on(request):
            refuse_foreign_page(request)
            refuse_forged(request)
            address = "" if request.client is None else request.client.host
            return None, self._rates.count(address, FILE_COST)
        written, session = request.headers.get("Authorization"), SESSION.of(request)
        caller = await self._ring.authenticate(written, session)
        if caller is None:
            refuse_foreign_host(request, self._settings)
            refuse_foreign_page(request)
            return None, None
        is_read = request.method in SAFE_METHODS
        brings_file = not is_read and is_file(request.headers.get("Content-Type", ""))
        allowance = self._rates.count(caller.id, FILE_COST if brings_file else 1)
        refuse_foreign_page(request)
        if written is None:
            refuse_forged(request)
        if path != SESSION_PATH:  # any caller may sign out
            needed = needed_scope(request.method, path)
            if needed.value not in caller.scopes:
                is_person = isinstance(caller, Person)
                raise MissingScopeError(needed.value, caller.scopes, of_person=is_person)
        return caller, allowance

    def _is_sign_on(self, request: Request) -> bool:
        path: str = request.scope["path"]
        is_path = path == SIGN_ON_PATH or path.startswith(f"{SIGN_ON_PATH}/")
        return is_path and self._settings.oidc_issuer != ""


def _with_rate_headers(allowance: Allowance, send: Send) -> Send:

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *allowance.headers()]
        await send(message)

    return send_with_headers


def needed_scope(method: str, path: str) -> KeyScope:
    """Returns the scope (permission of an API key) that an endpoint requires.

    >>> needed_scope("GET", "/v1/jobs").value, needed_scope("POST", "/v1/models").value
    ('read', 'write')
    """
    makes_connection = method == "POST" and path == _CONNECTIONS
    deletes_connection = method == "DELETE" and path.startswith(f"{_CONNECTIONS}/")
    if makes_connection or deletes_connection:
        return KeyScope.ADMIN
    if any(path == admin or path.startswith(f"{admin}/") for admin in _ADMIN_PATHS):
        return KeyScope.ADMIN
    return KeyScope.READ if method in SAFE_METHODS else KeyScope.WRITE
