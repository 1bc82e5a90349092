"""The gate: who comes in is decided before a byte of the body is read."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catalog.access.audit import ANYONE
from catalog.records import DEFAULT_WORKSPACE, Key
from catalog.records import Scope as KeyScope
from service.access import SAFE_METHODS, is_address, refuse_foreign_host, refuse_foreign_page
from service.errors import MissingScopeError
from service.http.body_limits import is_file
from service.http.problems import answer_before_routes
from service.http.rate_limits import FILE_COST, Allowance, RateLimits
from service.http.sessions import SESSION_PATH, refuse_forged, session_of
from service.keyring import KeyRing
from service.settings import ServiceSettings

_OF_OPERATORS = ("/metrics", "/v1/audit", "/v1/work")
"""They are for who runs the service; the first and the last tell of every workspace."""


class Gate:
    """Middleware that lets a request into its workspace, or answers it.

    With keys, every call needs one, or the session of a page that was signed in with one. A page
    that makes its name point at this machine has neither: so the names of hosts are looked at where
    there are no keys, whatever is asked for. Health checks need no key, and the pages themselves
    show nothing that is anybody's: they ask the API for it.
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
            admitted = await self._admit(request)
        except Exception as error:  # what is no refusal is raised again there
            await answer_before_routes(request, error)(scope, receive, send)
            return
        key = admitted.key
        scope["state"] |= {
            "workspace": DEFAULT_WORKSPACE if key is None else key.workspace,
            "actor": ANYONE if key is None else key.id,
            "key": key,
        }
        allowance = admitted.allowance
        await self.app(scope, receive, send if allowance is None else _with(allowance, send))

    async def _admit(self, request: Request) -> _Admitted:
        """The workspace that the request may see, and what is left to its key.

        Raises:
            UnauthorizedError: it has no key that is in force.
            TooManyRequestsError: its key has sent too many.
            MissingScopeError: its key does not let it do that.
            ForeignSiteError: it comes by a foreign host name, from a foreign page, or by a session
                without the mark of our pages.
        """
        if not _is_guarded(request.scope["path"]):
            # By an address come probes, and no page whose name was made to point at this machine:
            # they are answered while the database is not.
            if not (is_address(request) or await self._ring.keys_exist()):
                refuse_foreign_host(request, self._settings)
            return _Admitted()
        written, session = request.headers.get("Authorization"), session_of(request)
        key = await self._ring.holder(written, session)
        if key is None:
            refuse_foreign_host(request, self._settings)
            refuse_foreign_page(request)
            return _Admitted()
        is_read = request.method in SAFE_METHODS
        brings_file = not is_read and is_file(request.headers.get("Content-Type", ""))
        allowance = self._rates.count(key.id, FILE_COST if brings_file else 1)
        refuse_foreign_page(request)
        if written is None:
            refuse_forged(request)
        if request.scope["path"] != SESSION_PATH:  # who is let in may also leave
            _require(needed_scope(request.method, request.scope["path"]), key)
        return _Admitted(key, allowance)


@dataclass(frozen=True)
class _Admitted:
    key: Key | None = None
    allowance: Allowance | None = None


def _with(allowance: Allowance, send: Send) -> Send:
    """`send`, which tells what is left to the key."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *allowance.headers()]
        await send(message)

    return send_with_headers


def needed_scope(method: str, path: str) -> KeyScope:
    """What a key must be allowed for a call.

    >>> needed_scope("GET", "/v1/jobs").value, needed_scope("POST", "/v1/models").value
    ('read', 'write')
    """
    if path in _OF_OPERATORS:
        return KeyScope.ADMIN
    return KeyScope.READ if method in SAFE_METHODS else KeyScope.WRITE


def _is_guarded(path: str) -> bool:
    return path.startswith("/v1/") or path in ("/v1", "/metrics")


def _require(scope: KeyScope, key: Key) -> None:
    if scope.value not in key.scopes:
        raise MissingScopeError(scope.value, list(key.scopes))
