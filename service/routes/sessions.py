"""Endpoints for sessions of web pages: sign in with an API key, read the session, sign out."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from catalog.errors import BadKeyError, ConflictError
from catalog.records import Key
from catalog.records import Scope as KeyScope
from service.access import Workspace
from service.http.sessions import SESSION_PATH, session_of, set_cookie, take_cookie
from service.resources import Resources, Shared

router = APIRouter(prefix=SESSION_PATH, tags=["session"])


class SessionBody(BaseModel):
    """Workspace, API key and scopes (permissions) of the caller."""

    workspace: str
    key_id: str | None = Field(description="null if the service has no keys")
    key_name: str | None
    scopes: list[str]
    expires_at: datetime | None = Field(
        description="end of the session; null for requests with a key"
    )


@router.post("", status_code=201)
async def sign_in(
    request: Request, response: Response, resources: Shared, workspace: Workspace
) -> SessionBody:
    """Sign in a web page with the API key of this request. The response sets a cookie with the
    rights of the key, valid until `DELETE` or `expires_at`. Requests with the cookie that change
    something need the header `X-Gcvae-Page: 1`.
    """
    key: Key | None = request.state.key
    if key is None:
        raise ConflictError("this service has no keys, so that signing in is not needed")
    seconds = resources.settings.session_seconds
    token, expires_at = await run_in_threadpool(resources.catalog.sessions.open, key.id, seconds)
    set_cookie(request, response, token, seconds)
    return _body(workspace.name, key, expires_at)


@router.get("")
async def read_session(
    request: Request, response: Response, resources: Shared, workspace: Workspace
) -> SessionBody:
    """Read the workspace, API key and scopes of the caller, and when its session expires."""
    response.headers["Cache-Control"] = "no-store"
    expires_at = await run_in_threadpool(_end, resources, request)
    return _body(workspace.name, request.state.key, expires_at)


@router.delete("", status_code=204)
async def sign_out(request: Request, response: Response, resources: Shared) -> None:
    """End the session of the web page and delete its cookie. Without a session it has no effect."""
    token = session_of(request)
    if token is not None:
        await run_in_threadpool(resources.catalog.sessions.close, token)
        request.app.state.key_ring.forget_session(token)
    take_cookie(request, response)


def _end(resources: Resources, request: Request) -> datetime | None:
    """Returns when the session of a request expires; None if the request uses no session."""
    token = session_of(request)
    if token is None or request.state.key is None or "Authorization" in request.headers:
        return None
    try:
        return resources.catalog.sessions.find(token)[1]
    except BadKeyError:  # it has just ended
        return None


def _body(workspace: str, key: Key | None, expires_at: datetime | None) -> SessionBody:
    """Returns the response body for the caller; `key` is None if the service has no API keys."""
    return SessionBody(
        workspace=workspace,
        key_id=None if key is None else key.id,
        key_name=None if key is None else key.name,
        scopes=[scope.value for scope in KeyScope] if key is None else key.scopes,
        expires_at=expires_at,
    )
