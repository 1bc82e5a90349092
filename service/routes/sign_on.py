"""Endpoints for single sign-on: begin to sign in at the provider, and complete it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from catalog.access.audit import ANYONE
from catalog.errors import ConflictError
from service.bodies import RequestBody
from service.errors import ProviderError, SignOnError
from service.http.json_bodies import JsonRoute
from service.http.sessions import SIGN_ON, SIGN_ON_PATH, SIGN_ON_SECONDS
from service.resources import Resources, Shared
from service.routes.sessions import SessionBody, open_session
from service.settings import variable

if TYPE_CHECKING:
    from service.sign_on import SignOn

router = APIRouter(prefix=SIGN_ON_PATH, tags=["session"], route_class=JsonRoute)


class BeginBody(RequestBody):
    """The page to show after signing in."""

    return_to: str = Field(
        "/",
        max_length=2000,
        pattern=r"^/([^/\\\x00-\x20\x7f][^\\\x00-\x20\x7f]*)?$",
        description="path of a page of this service",
    )


class BegunBody(BaseModel):
    """The URL of the provider at which the browser signs in."""

    url: str = Field(description="page of the provider")


class AnswerBody(RequestBody):
    """The query parameters with which the provider sent the browser back to the sign-in page."""

    state: str = Field(max_length=200)
    code: str | None = Field(None, max_length=8000)
    error: str | None = Field(
        None, max_length=200, pattern=r"^[\x20-\x7e]+$", description="in place of a code"
    )
    iss: str | None = Field(None, max_length=2000, description="issuer, if the provider gave it")


class SignedOnBody(SessionBody):
    """Workspace, person and scopes (permissions) of the new session."""

    return_to: str = Field(description="path of the page to show")


@router.post("")
async def begin_sign_on(
    body: BeginBody, request: Request, response: Response, resources: Shared
) -> BegunBody:
    """Begin to sign in at the provider (OpenID Connect, code flow with PKCE). The response sets a
    cookie that `POST /v1/sign-on/answer` needs. Requires the header `X-Gcvae-Page: 1`, no key."""
    url, state = await _sign_on(resources).begin(body.return_to)
    SIGN_ON.set(request, response, state, SIGN_ON_SECONDS)
    return BegunBody(url=url)


@router.post("/answer", status_code=201)
async def finish_sign_on(
    body: AnswerBody, request: Request, response: Response, resources: Shared
) -> SignedOnBody:
    """Complete a sign-in with the answer of the provider. The response sets the cookie of a session
    with the workspace and scopes that the person's groups have. Requires the header
    `X-Gcvae-Page: 1`, no key."""
    SIGN_ON.delete(request, response)
    request.state.workspace, request.state.actor = "", ANYONE  # until the person is known
    try:
        person, return_to = await _sign_on(resources).finish(
            SIGN_ON.of(request), body.state, body.code, body.error, body.iss
        )
    except (SignOnError, ProviderError) as error:
        request.state.subject = f"{request.url.path}: {error}"
        raise
    request.state.workspace, request.state.actor = person.workspace, person.id
    request.state.subject = f"{request.url.path}: {person.name}"
    signed_in = await open_session(request, response, person)
    return SignedOnBody(**signed_in.model_dump(), return_to=return_to)


def _sign_on(resources: Resources) -> SignOn:
    if resources.sign_on is None:
        raise ConflictError(f"single sign-on is not configured ({variable('oidc_issuer')})")
    return resources.sign_on
