"""Endpoints for sessions of web pages: sign in with an API key, read the session, sign out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from catalog.access.sessions import Session
from catalog.errors import BadKeyError, ConflictError
from catalog.records import Caller, Key, Person
from catalog.records import Scope as KeyScope
from service.access import Workspace
from service.http.sessions import SESSION, SESSION_PATH
from service.resources import Resources, Shared

router = APIRouter(prefix=SESSION_PATH, tags=["session"])


class SessionBody(BaseModel):
    """Workspace, API key or person, and scopes (permissions) of the caller."""

    workspace: str
    key_id: str | None = Field(description="null for a person, and if the service has no keys")
    key_name: str | None
    person: str | None = Field(description="who signed in with the provider; null for a key")
    scopes: list[str]
    expires_at: datetime | None = Field(
        description="end of the session; null for requests with a key"
    )
    is_due: bool = Field(description="whether `PATCH` should replace the token of the session")
    sign_out_url: str | None = Field(
        description="page at which a person signs out of the provider; null if there is none"
    )


@router.post("", status_code=201)
async def sign_in(request: Request, response: Response, workspace: Workspace) -> SessionBody:
    """Sign in a web page with the API key of this request. The response sets a cookie with the
    rights of the key. It is valid until `DELETE`, until `expires_at`, or until no request has come
    for some time. Requests with the cookie that change something need the header `X-Gcvae-Page: 1`.
    """
    caller: Caller | None = request.state.caller
    if caller is None:
        raise ConflictError("this service has no keys, so that signing in is not needed")
    if not isinstance(caller, Key) or "Authorization" not in request.headers:
        raise ConflictError("this page is signed in; a session is opened with a key")
    return await open_session(request, response, caller)


async def open_session(request: Request, response: Response, caller: Key | Person) -> SessionBody:
    """Opens a session, which replaces any former session of the browser, and sets its cookie."""
    resources: Resources = request.app.state.resources
    sessions, settings = resources.catalog.sessions, resources.settings
    if (former := SESSION.of(request)) is not None:
        await run_in_threadpool(sessions.close, former)
        request.app.state.key_ring.forget_session(former)
    owner = caller if isinstance(caller, Person) else caller.id
    token, expires_at = await run_in_threadpool(
        sessions.open, owner, settings.session_seconds, settings.session_idle_seconds
    )
    SESSION.set(request, response, token, settings.session_seconds)
    return _body(caller.workspace, caller, Session(caller, expires_at, is_due=False))


@router.get("")
async def read_session(
    request: Request, response: Response, resources: Shared, workspace: Workspace
) -> SessionBody:
    """Read the workspace, API key or person, and scopes of the caller, and when its session
    expires."""
    response.headers["Cache-Control"] = "no-store"
    session = await run_in_threadpool(_session, resources, request)
    return _body(workspace.name, request.state.caller, session)


@router.patch("")
async def renew_session(
    request: Request, response: Response, resources: Shared, workspace: Workspace
) -> SessionBody:
    """Replace the token of the web page's session if it is old enough (member `is_due`). The
    response then sets the cookie with the new token. The former token stays valid for a minute, for
    requests that are in progress."""
    session = await run_in_threadpool(_session, resources, request)
    if session is not None and session.is_due:
        token = await run_in_threadpool(resources.catalog.sessions.renew, str(SESSION.of(request)))
        if token is not None:
            left = int((session.expires_at - datetime.now(UTC)).total_seconds())
            SESSION.set(request, response, token, left)
            session = replace(session, is_due=False)
    return _body(workspace.name, request.state.caller, session)


@router.delete("", status_code=204)
async def sign_out(request: Request, response: Response, resources: Shared) -> None:
    """End the session of the web page and delete its cookie. Without a session it has no effect."""
    token = SESSION.of(request)
    if token is not None:
        await run_in_threadpool(resources.catalog.sessions.close, token)
        request.app.state.key_ring.forget_session(token)
    SESSION.delete(request, response)


def _session(resources: Resources, request: Request) -> Session | None:
    token = SESSION.of(request)
    if token is None or request.state.caller is None or "Authorization" in request.headers:
        return None
    try:
        return resources.catalog.sessions.find(token)
    except BadKeyError:  # it has just ended
        return None


def _body(workspace: str, caller: Caller | None, session: Session | None) -> SessionBody:
    """Returns the description of a caller and session. `caller` is None if the service needs no
    authentication; `session` is None if the request has no session."""
    key = caller if isinstance(caller, Key) else None
    person = caller if isinstance(caller, Person) else None
    return SessionBody(
        workspace=workspace,
        key_id=None if key is None else key.id,
        key_name=None if key is None else key.name,
        person=None if person is None else person.name,
        scopes=[scope.value for scope in KeyScope] if caller is None else caller.scopes,
        expires_at=None if session is None else session.expires_at,
        is_due=session is not None and session.is_due,
        sign_out_url=None if person is None else person.sign_out_url,
    )
