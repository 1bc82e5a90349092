"""An OpenID Connect provider on a free loopback port, made of Authlib's server.

It checks client, secret, redirect URI, code and PKCE as a provider does, and answers badly if asked
to: with other claims, other signatures, other documents, late or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any

import flask
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, grants
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import OpenIDCode
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.servers.serving import serving

CLIENT_ID = "gcvae-pages"
CLIENT_SECRET = "a-secret-that-is-told-nobody~1"
Claims = dict[str, Any]
Forge = Callable[[dict[str, Any], Claims], str]


@dataclass
class Client(ClientMixin):  # type: ignore[misc]
    """The service, as it is registered with the provider."""

    redirect_uri: str
    secret_method: str

    def get_client_id(self) -> str:
        return CLIENT_ID

    def get_default_redirect_uri(self) -> None:
        return None

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri == self.redirect_uri

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == self.secret_method

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


@dataclass
class Code(AuthorizationCodeMixin):  # type: ignore[misc]
    """An authorization code that was not redeemed yet."""

    code: str
    redirect_uri: str
    scope: str
    nonce: str | None
    person: Claims
    code_challenge: str | None
    code_challenge_method: str | None

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> None:
        return None

    def get_acr(self) -> None:
        return None

    def get_amr(self) -> None:
        return None


@dataclass
class Provider:
    """The provider: whom it knows, and how it misbehaves.

    Attributes:
        people: Claims by subject.
        described: Members that differ in its description of itself.
        forge: Makes another ID token of the header and claims of the right one.
        answers: Function that answers instead, by path.
        asked: Paths of the requests, in order.
    """

    url: str
    redirect_uri: str = ""
    people: dict[str, Claims] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: _new_key("first"))
    secret_method: str = "client_secret_basic"
    groups_in_token: bool = True
    described: dict[str, Any] = field(default_factory=dict)
    forge: Forge | None = None
    answers: dict[str, Callable[[], Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    codes: dict[str, Code] = field(default_factory=dict)
    tokens: dict[str, Claims] = field(default_factory=dict)

    def rotate_key(self, kid: str) -> None:
        """Sign with a new key from now on; the old one is published no more."""
        self.key = _new_key(kid)

    def behave(self) -> None:
        """End all misbehaviour."""
        self.described, self.forge, self.answers = {}, None, {}
        self.secret_method, self.groups_in_token = "client_secret_basic", True
        self.asked.clear()

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "end_session_endpoint": f"{self.url}/end_session",
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": [self.secret_method],
            "code_challenge_methods_supported": ["S256"],
        } | self.described


def _new_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})


def _made(provider: Provider) -> flask.Flask:
    app = flask.Flask("identity_provider")

    class CodeGrant(grants.AuthorizationCodeGrant):  # type: ignore[misc]
        TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

        def save_authorization_code(self, code: str, request: Any) -> None:
            data = request.payload.data
            provider.codes[code] = Code(
                code,
                data["redirect_uri"],
                request.payload.scope,
                data.get("nonce"),
                request.user,
                data.get("code_challenge"),
                data.get("code_challenge_method"),
            )

        def query_authorization_code(self, code: str, client: Client) -> Code | None:
            return provider.codes.get(code)

        def delete_authorization_code(self, authorization_code: Code) -> None:
            del provider.codes[authorization_code.code]

        def authenticate_user(self, authorization_code: Code) -> Claims:
            return authorization_code.person

    class IdToken(OpenIDCode):  # type: ignore[misc]
        def exists_nonce(self, nonce: str, request: Any) -> bool:
            return any(code.nonce == nonce for code in provider.codes.values())

        def resolve_client_private_key(self, client: Client) -> RSAKey:
            return provider.key

        def get_encode_header(self, client: Client) -> dict[str, Any]:
            return {"alg": "RS256", "kid": provider.key.kid}

        def get_client_claims(self, client: Client) -> Claims:
            return {"iss": provider.url, "aud": [CLIENT_ID]}

        def generate_user_info(self, user: Claims, scope: str) -> Claims:
            hidden = () if provider.groups_in_token else ("groups",)
            return {name: value for name, value in user.items() if name not in hidden}

        def encode_id_token(self, token: dict[str, Any], request: Any) -> str:
            provider.tokens[token["access_token"]] = request.user
            honest: str = super().encode_id_token(token, request)
            if provider.forge is None:
                return honest
            read = jwt.decode(honest, provider.key)
            return provider.forge(read.header, read.claims)

    server = AuthorizationServer(
        app,
        lambda _: Client(provider.redirect_uri, provider.secret_method),
        lambda token, request: None,
    )
    server.register_grant(CodeGrant, [IdToken(require_nonce=True), CodeChallenge(required=True)])

    @app.before_request
    def misbehave() -> Any:
        provider.asked.append(flask.request.path)
        answer = provider.answers.get(flask.request.path)
        return None if answer is None else answer()

    @app.get("/.well-known/openid-configuration")
    def describe() -> Any:
        return provider.description()

    @app.get("/keys")
    def publish_keys() -> Any:
        return KeySet([provider.key]).as_dict(private=False)

    @app.get("/authorize")
    def ask_who() -> Any:
        server.get_consent_grant(end_user=None)
        buttons = "".join(
            f'<p><button name="person" value="{escape(sub)}">{escape(claims["name"])}</button></p>'
            for sub, claims in provider.people.items()
        )
        form = f'<form method="post">{buttons}<p><button>Nobody</button></p></form>'
        return f'<!doctype html><html lang="en"><title>Provider</title><h1>Who are you?</h1>{form}'

    @app.post("/authorize")
    def authorize() -> Any:
        person = provider.people.get(flask.request.form.get("person", ""))
        grant = server.get_consent_grant(end_user=person)
        return server.create_authorization_response(grant_user=person, grant=grant)

    @app.post("/token")
    def redeem() -> Any:
        return server.create_token_response()

    @app.get("/userinfo")
    def tell() -> Any:
        token = flask.request.headers.get("Authorization", "").removeprefix("Bearer ")
        return provider.tokens.get(token) or flask.abort(401)

    @app.get("/end_session")
    def end_session() -> Any:
        return flask.redirect(flask.request.args["post_logout_redirect_uri"])

    return app


class _Silent(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        pass


@contextmanager
def identity_provider() -> Iterator[Provider]:
    """A provider, until the block ends."""
    provider = Provider("")
    server = make_server("127.0.0.1", 0, _made(provider), threaded=True, request_handler=_Silent)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    with serving(server):
        yield provider
