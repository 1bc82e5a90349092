"""Single sign-on by OpenID Connect: the authorization code flow with PKCE.

    begin:   state, nonce, verifier → cookie;  state, nonce, SHA-256 of verifier → provider
    finish:  provider → code, state;  code, verifier, secret → provider → ID token
             groups of the ID token → workspace and scopes

State, nonce and verifier are random texts; the code is the authorization code. The cookie is
encrypted, so that the service stores nothing until a person has signed in. A code is accepted only
with the state in the cookie, so that a sign-in begins and ends in the same browser. An ID token is
accepted only with the nonce in the cookie, so that a token of another sign-in is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlsplit

import httpx
from authlib.common.urls import add_params_to_uri
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import get_well_known_url
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwe import JWERegistry
from joserfc.jwk import KeySet, OctKey
from joserfc.jws import JWSRegistry

from catalog.records import Person
from service.errors import OutsideError, ProviderError, SignOnError
from service.http.sessions import SIGN_ON_SECONDS
from service.outside import AllowedHosts
from service.settings import ServiceSettings, variable

_PROVIDER_SECONDS = 3600.0
"""Seconds after which the provider's metadata and keys are read again."""
_LEEWAY_SECONDS = 60
"""Maximum difference between the clocks of provider and service."""
_NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_ENDPOINTS = (*_NEEDED, "userinfo_endpoint", "end_session_endpoint")
_BASIC = "client_secret_basic"
_NAMES = ("email", "preferred_username", "name", "sub")
"""Claims with the name of a person; the first one that the provider sends is shown."""
_MOST_NAME = 200

# Only signatures with a private key, whatever the provider or the token says: not `none`, and no
# HMAC, for which a public key could pass as the secret.
_SIGNATURES = JWSRegistry(
    algorithms=["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"],
    strict_check_header=False,
)
_ENCRYPTION = JWERegistry(algorithms=["dir", "A256GCM"])
_INVALID = (JoseError, ValueError, TypeError, KeyError)
"""Exceptions of Authlib and joserfc about invalid tokens and keys."""


@dataclass(frozen=True)
class _Provider:
    """What the service has read from the provider.

    Attributes:
        found: The provider's metadata document.
        keys: The provider's public keys.
        read_again_at: Time (of `time.monotonic`) from which document and keys are read again.
    """

    found: dict[str, Any]
    keys: KeySet
    read_again_at: float


class SignOn:
    """Signs persons in at an OpenID Connect provider.

    It sends requests only to the host of the setting `oidc_issuer` and to `outside_hosts`. Each
    call of `begin` and `finish` ends within `outside_timeout_seconds`.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._issuer = settings.oidc_issuer
        self._seconds = settings.outside_timeout_seconds
        hosts = [str(urlsplit(self._issuer).hostname), *settings.outside_hosts]
        self._allowed_hosts = AllowedHosts(hosts, settings.outside_networks, self._seconds)
        key = hashlib.sha256(f"cookie of a sign-on {settings.oidc_client_secret}".encode()).digest()
        self._cookie_key = OctKey.import_key(key)
        self._known: _Provider | None = None

    async def close(self) -> None:
        """Closes all connections to the provider."""
        await self._allowed_hosts.close()

    async def begin(self, return_to: str) -> tuple[str, str]:
        """Begins a sign-on. Returns (URL of the provider for the browser, encrypted cookie).

        Args:
            return_to: URL path of the page to show afterwards.

        Raises:
            ProviderError: The provider cannot be reached, or its answer is not valid.
        """
        async with self._answering():
            provider = await self._provider()
        flow = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        url = prepare_grant_uri(
            provider.found["authorization_endpoint"],
            self._settings.oidc_client_id,
            "code",
            self._settings.oidc_redirect_uri,
            self._settings.oidc_scopes,
            flow["state"],
            nonce=flow["nonce"],
            code_challenge=create_s256_code_challenge(flow["verifier"]),
            code_challenge_method="S256",
        )
        claims = {**flow, "return_to": return_to, "exp": int(time.time()) + SIGN_ON_SECONDS}
        header = {"alg": "dir", "enc": "A256GCM"}
        return url, jwt.encode(header, claims, self._cookie_key, registry=_ENCRYPTION)

    async def finish(
        self,
        cookie: str | None,
        state: str,
        code: str | None,
        error: str | None,
        issuer: str | None,
    ) -> tuple[Person, str]:
        """Completes a sign-on and returns (person, URL path of the page to show).

        Args:
            cookie: Cookie that `begin` returned; None if the browser sent none.
            state, code, error, issuer: Parameters with which the provider sent the browser back;
                None if missing.

        Raises:
            SignOnError: The parameters belong to another sign-on or are an error, the ID token is
                not valid, or the person is in no group that may use this service.
            ProviderError: The provider cannot be reached, or its answer is not valid.
        """
        flow = self._opened(cookie)
        if not secrets.compare_digest(flow["state"].encode(), state.encode()):
            raise SignOnError("the answer belongs to another sign-in; sign in again")
        if issuer is not None and issuer != self._issuer:
            raise SignOnError("the answer comes from another provider; sign in again")
        if code is None:
            raise SignOnError(f"the provider refused the sign-in ({error or 'without a reason'})")
        async with self._answering():
            provider = await self._provider()
            tokens = await self._redeemed(provider, code, flow["verifier"])
            claims = await self._verified(tokens, flow["nonce"])
            if self._settings.oidc_groups_claim not in claims:
                claims |= await self._user_info(provider, tokens, claims["sub"])
        return self._person(claims, provider), str(flow["return_to"])

    def _opened(self, cookie: str | None) -> dict[str, Any]:
        """Returns the decrypted content of the cookie from `begin`. Raises SignOnError if the
        cookie is missing, invalid or expired."""
        try:
            flow = jwt.decode(cookie or "", self._cookie_key, registry=_ENCRYPTION).claims
            jwt.JWTClaimsRegistry(exp={"essential": True}).validate(flow)
        except _INVALID:
            start = self._settings.oidc_redirect_uri
            raise SignOnError(
                f"the sign-in was not begun in this browser at {start}, or it took longer than "
                f"{SIGN_ON_SECONDS // 60} minutes; sign in again"
            ) from None
        return flow

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        """Limits the time of a block that sends requests to the provider. If a request fails or the
        time is over, ProviderError is raised."""
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except (TimeoutError, httpx.TimeoutException):
            raise ProviderError(
                f"{self._issuer} did not answer within {self._seconds:g} s; try again later"
            ) from None
        except OutsideError as error:
            allowed = f"{variable('outside_hosts')} and {variable('outside_networks')}"
            raise ProviderError(f"{error}; the operator allows hosts by {allowed}") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ProviderError(
                f"no connection to {self._issuer} ({type(error).__name__}); try again later"
            ) from None

    async def _provider(self, *, is_new: bool = False) -> _Provider:
        """Returns the provider's metadata and keys, cached for an hour unless `is_new`."""
        known = self._known
        if known is None or is_new or time.monotonic() >= known.read_again_at:
            found = await self._read("GET", get_well_known_url(self._issuer, external=True))
            if found.get("issuer") != self._issuer:
                raise ProviderError(
                    f"{self._issuer} calls itself {found.get('issuer')!r}; "
                    f"{variable('oidc_issuer')} must be the same text"
                )
            for name in _ENDPOINTS:
                is_given = name in _NEEDED or found.get(name)
                if is_given and _scheme(found.get(name)) not in ("https", _scheme(self._issuer)):
                    raise ProviderError(f"{self._issuer} names no {name} with the scheme https")
            try:
                keys = KeySet.import_key_set(await self._read("GET", found["jwks_uri"]))  # type: ignore[arg-type]
            except _INVALID:
                raise ProviderError(f"the keys of {self._issuer} cannot be read") from None
            known = self._known = _Provider(found, keys, time.monotonic() + _PROVIDER_SECONDS)
        return known

    async def _redeemed(self, provider: _Provider, code: str, verifier: str) -> dict[str, Any]:
        """Exchanges an authorization code for tokens. Returns them by name."""
        named = (self._settings.oidc_client_id, self._settings.oidc_client_secret)
        methods = provider.found.get("token_endpoint_auth_methods_supported") or _BASIC
        if _BASIC in str(methods):  # encoded, by RFC 6749, section 2.3.1
            client = ClientAuth(*map(quote_plus, named), _BASIC)
        else:
            client = ClientAuth(*named, "client_secret_post")
        form = {
            "redirect_uri": self._settings.oidc_redirect_uri,
            "code": code,
            "code_verifier": verifier,
        }
        url, headers, body = client.prepare(
            "POST",
            provider.found["token_endpoint"],
            {"Content-Type": "application/x-www-form-urlencoded"},
            prepare_token_request("authorization_code", **form),
        )
        return await self._read("POST", url, headers, body.encode())

    async def _verified(self, tokens: dict[str, Any], nonce: str) -> dict[str, Any]:
        """Checks the ID token in `tokens`: its signature and claims. Returns the claims."""
        try:
            text = str(tokens.get("id_token"))
            try:
                token = jwt.decode(text, (await self._provider()).keys, registry=_SIGNATURES)
            except (InvalidKeyIdError, BadSignatureError):  # the provider may have new keys
                keys = (await self._provider(is_new=True)).keys
                token = jwt.decode(text, keys, registry=_SIGNATURES)
            CodeIDToken(
                token.claims,
                token.header,
                {
                    "iss": {"essential": True, "value": self._issuer},
                    "aud": {"essential": True, "value": self._settings.oidc_client_id},
                    "sub": {"essential": True},
                },
                {
                    "nonce": nonce,
                    "client_id": self._settings.oidc_client_id,
                    "access_token": tokens.get("access_token"),
                },
            ).validate(leeway=_LEEWAY_SECONDS)
        except _INVALID as error:
            why = _printable(str(error))
            raise SignOnError(f"the ID token is not valid ({why})") from None
        return token.claims

    async def _user_info(
        self, provider: _Provider, tokens: dict[str, Any], subject: str
    ) -> dict[str, Any]:
        """Returns the claims of the provider's UserInfo endpoint; {} if it has none. Some providers
        list the groups of a person only there."""
        if not provider.found.get("userinfo_endpoint"):
            return {}
        headers = {"Authorization": f"Bearer {tokens.get('access_token')}"}
        claims = await self._read("GET", provider.found["userinfo_endpoint"], headers)
        if claims.get("sub") != subject:
            raise SignOnError("the claims belong to another person")
        return claims

    def _person(self, claims: dict[str, Any], provider: _Provider) -> Person:
        """Converts claims to a person with the workspace and scopes of the person's groups."""
        subject = json.dumps([self._issuer, claims["sub"]]).encode()
        person_id = f"usr_{hashlib.sha256(subject).hexdigest()[:32]}"
        texts = [_printable(claims.get(name)) for name in _NAMES]
        name = next(filter(None, texts), person_id)
        given = claims.get(self._settings.oidc_groups_claim)
        theirs = given if isinstance(given, list) else [given]
        groups = self._settings.oidc_groups
        grants = [grant for group, grant in groups.items() if group in theirs]
        if not grants:
            raise SignOnError(f"{name} is in no group that may use this service; ask the operator")
        workspace = grants[0].workspace
        scopes = {
            scope for grant in grants if grant.workspace == workspace for scope in grant.scopes
        }
        sign_out_url = self._sign_out_url(provider)
        return Person(person_id, workspace, name, sorted(scopes), sign_out_url)

    def _sign_out_url(self, provider: _Provider) -> str | None:
        if not provider.found.get("end_session_endpoint"):
            return None
        told = {
            "client_id": self._settings.oidc_client_id,
            "post_logout_redirect_uri": self._settings.oidc_redirect_uri,
        }
        return str(add_params_to_uri(provider.found["end_session_endpoint"], told.items()))

    async def _read(
        self, method: str, url: str, headers: dict[str, str] | None = None, body: bytes = b""
    ) -> dict[str, Any]:
        """Sends a request to the provider and returns the JSON object in the response."""
        plain = {"Accept": "application/json", "Accept-Encoding": "identity"}
        status, content = await self._allowed_hosts.fetch(
            method, url, plain | (headers or {}), body
        )
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            document = None
        if status == 200 and isinstance(document, dict):
            return document
        error = document.get("error") if isinstance(document, dict) else None
        if error == "invalid_grant":
            raise SignOnError("the provider does not accept the code; sign in again")
        why = f" ({error})" if isinstance(error, str) and error.replace("_", "").isalpha() else ""
        raise ProviderError(f"{url} answered {status}{why}, not a JSON object with status 200")


def _scheme(url: object) -> str:
    try:
        return urlsplit(url).scheme if isinstance(url, str) else ""
    except ValueError:
        return ""


def _printable(text: object) -> str:
    return "".join(filter(str.isprintable, text))[:_MOST_NAME] if isinstance(text, str) else ""
