"""People sign in at a real OpenID Connect provider, and nobody signs in who should not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from sqlalchemy import text

from catalog.records import AuditEntry, Scope
from gcvae_cli.errors import WrongUsageError
from gcvae_cli.ports import free_port
from gcvae_cli.server.commands import read_server_settings
from service.access import refuse_open_address
from service.http.sessions import PAGE_HEADER, SESSION, SIGN_ON
from service.keyring import FRESH_SECONDS
from tests.catalog.conftest import add_dataset
from tests.lengths import AT_LENGTH, first_of
from tests.running_service import Running, assert_problem, running, settings_in
from tests.servers.identity_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    Claims,
    Provider,
    identity_provider,
)

OURS = {PAGE_HEADER: "1"}
COOKIE, SIGN_ON_COOKIE = SESSION.prefix, SIGN_ON.prefix
GROUPS = {
    "analysts": {"workspace": "acme", "scopes": ["read"]},
    "engineers": {"workspace": "acme", "scopes": ["read", "write"]},
    "auditors": {"workspace": "acme", "scopes": ["read", "admin"]},
    "others": {"workspace": "elsewhere", "scopes": ["read", "write", "admin"]},
}
PEOPLE: dict[str, Claims] = {
    "1": {"sub": "1", "name": "Ada", "email": "ada@example.com", "groups": ["analysts"]},
    "2": {"sub": "2", "name": "Bo", "groups": ["nobodies", "engineers", "auditors"]},
    "3": {"sub": "3", "name": "Cy", "groups": ["nobodies"]},
    "4": {"sub": "4", "name": "Di", "groups": ["others"]},
    "5": {"sub": "5", "name": "Ed", "groups": ["others", "engineers"]},
}


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[Provider]:
    with identity_provider() as found:
        yield found


@pytest.fixture
def provider(shared_provider: Provider) -> Provider:
    shared_provider.behave()
    shared_provider.people = {sub: {**claims} for sub, claims in PEOPLE.items()}
    return shared_provider


@pytest.fixture(scope="module")
def shared_service(
    shared_provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    settings = sign_on_settings(shared_provider)
    with running(settings_in(tmp_path_factory.mktemp("service"), **settings)) as found:
        yield found


@pytest.fixture
def service(shared_service: Running, provider: Provider) -> Running:
    """The shared service, which has read nothing of the provider yet."""
    assert shared_service.resources.sign_on is not None
    shared_service.resources.sign_on._known = None
    provider.redirect_uri = str(shared_service.settings.oidc_redirect_uri)
    return shared_service


def sign_on_settings(provider: Provider, **given: object) -> dict[str, object]:
    port = free_port("127.0.0.1", 0)
    provider.redirect_uri = f"http://127.0.0.1:{port}/sign-in"
    return {
        "port": port,
        "max_requests_per_minute": 60_000,
        "outside_networks": ("127.0.0.0/8",),
        "outside_timeout_seconds": 1.0,
        "oidc_issuer": provider.url,
        "oidc_client_id": CLIENT_ID,
        "oidc_client_secret": CLIENT_SECRET,
        "oidc_redirect_uri": provider.redirect_uri,
        "oidc_groups": json.dumps(GROUPS),
    } | given


class Page:
    """A browser before the pages of a service, with its cookies."""

    def __init__(self, service: Running) -> None:
        self.port = urlsplit(service.url).port
        plain = {"verify": False, "trust_env": False, "timeout": 20}  # quickly made
        self.http = httpx.Client(base_url=service.url, headers=OURS, **plain)  # type: ignore[arg-type]
        self.at_provider = httpx.Client(**plain)  # type: ignore[arg-type]

    def begin(self, **body: str) -> httpx.Response:
        return self.http.post("/v1/sign-on", json=body)

    def answer(self, person: str, **body: str) -> dict[str, str]:
        """What the provider gives to the browser of a person."""
        begun = self.begin(**body)
        assert begun.status_code == 200, begun.text
        told = self.at_provider.post(begun.json()["url"], data={"person": person})
        assert told.status_code == 302, told.text
        return dict(parse_qsl(urlsplit(told.headers["Location"]).query))

    def finish(self, answer: dict[str, str]) -> httpx.Response:
        return self.http.post("/v1/sign-on/answer", json=answer)

    def sign_in(self, person: str) -> httpx.Response:
        return self.finish(self.answer(person))

    def cookie(self, prefix: str = COOKIE) -> str | None:
        return self.http.cookies.get(f"{prefix}_{self.port}")


@pytest.fixture
def browser() -> Iterator[Callable[[Running], Page]]:
    """Open another browser before a service."""
    with ExitStack() as stack:

        def open_page(service: Running) -> Page:
            opened = Page(service)
            stack.enter_context(opened.http)
            stack.enter_context(opened.at_provider)
            return opened

        yield open_page


@pytest.fixture
def page(service: Running, browser: Callable[[Running], Page]) -> Page:
    return browser(service)


def test_the_groups_of_a_person_give_a_workspace_and_scopes(page: Page) -> None:
    signed_in = page.sign_in("2")
    assert signed_in.status_code == 201, signed_in.text
    who = page.http.get("/v1/session").json()
    assert (who["workspace"], who["person"], who["key_id"]) == ("acme", "Bo", None)
    assert who["scopes"] == ["admin", "read", "write"]
    assert who.items() <= signed_in.json().items()
    assert page.http.get("/v1/datasets").status_code == 200
    assert_problem(page.http.delete("/v1/datasets/ds_1"), 404, "not-found")
    assert page.http.get("/v1/audit").status_code == 200


def test_of_several_workspaces_the_first_in_the_setting_counts(page: Page) -> None:
    who = page.sign_in("5").json()
    assert (who["workspace"], who["scopes"]) == ("acme", ["read", "write"])


def test_the_scopes_of_a_person_limit_the_calls(page: Page) -> None:
    page.sign_in("1")
    assert page.http.get("/v1/jobs").status_code == 200
    problem = assert_problem(page.http.delete("/v1/datasets/ds_1"), 403, "missing-scope")
    assert problem["detail"] == "this call requires the scope 'write'; your groups give: read"
    assert problem["advice"] == "ask the operator for a group with this scope"
    assert_problem(page.http.get("/v1/audit"), 403, "missing-scope")


def test_names_of_people_are_shown_as_printable_text(page: Page, provider: Provider) -> None:
    provider.people["1"]["email"] = "a\0b\n\u202ec" + "d" * 300
    assert page.sign_in("1").json()["person"] == ("abc" + "d" * 300)[:200]
    provider.people["1"] = {"sub": "\n", "name": 7, "groups": "analysts"}
    assert page.sign_in("1").json()["person"].startswith("usr_")


def test_another_workspace_stays_not_found(
    browser: Callable[[Running], Page], service: Running, page: Page
) -> None:
    page.sign_in("2")
    theirs = add_dataset(service.catalog, workspace="acme").id
    other = browser(service)
    assert other.sign_in("4").json()["workspace"] == "elsewhere"
    assert_problem(other.http.get(f"/v1/datasets/{theirs}"), 404, "not-found")
    assert_problem(other.http.delete(f"/v1/datasets/{theirs}"), 404, "not-found")
    assert other.http.get("/v1/datasets").json()["items"] == []
    assert page.http.get(f"/v1/datasets/{theirs}").status_code == 200


def test_a_person_in_no_mapped_group_is_told_so(page: Page) -> None:
    problem = assert_problem(page.sign_in("3"), 403, "sign-on-refused")
    assert problem["detail"] == "Cy is in no group that may use this service; ask the operator"
    assert page.cookie() is None
    assert_problem(page.http.get("/v1/session"), 401, "unauthorized")


def test_a_change_of_groups_takes_effect_at_the_next_sign_in(
    page: Page, provider: Provider
) -> None:
    page.sign_in("1")
    provider.people["1"]["groups"] = ["engineers"]
    assert page.http.get("/v1/session").json()["scopes"] == ["read"]
    assert page.sign_in("1").json()["scopes"] == ["read", "write"]
    provider.people["1"]["groups"] = []
    assert_problem(page.sign_in("1"), 403, "sign-on-refused")


@pytest.mark.parametrize("groups", ["analysts", ["analysts"], ["x", "analysts", 7, None]])
def test_groups_may_be_a_text_or_a_list(page: Page, provider: Provider, groups: Any) -> None:
    provider.people["1"]["groups"] = groups
    assert page.sign_in("1").json()["scopes"] == ["read"]


@pytest.mark.parametrize("groups", ["ANALYSTS", {"analysts": 1}, 7, True, None, [["analysts"]]])
def test_groups_of_another_form_give_nothing(page: Page, provider: Provider, groups: Any) -> None:
    provider.people["1"]["groups"] = groups
    assert_problem(page.sign_in("1"), 403, "sign-on-refused")


def test_groups_may_come_from_the_userinfo_endpoint(page: Page, provider: Provider) -> None:
    provider.groups_in_token = False
    assert page.sign_in("1").json()["scopes"] == ["read"]
    provider.answers["/userinfo"] = lambda: {"sub": "2", "groups": ["auditors"]}
    assert_problem(page.sign_in("1"), 403, "sign-on-refused")


def test_the_secret_is_sent_as_the_provider_asks(page: Page, provider: Provider) -> None:
    provider.secret_method = "client_secret_post"
    assert page.sign_in("1").status_code == 201


@pytest.mark.parametrize("methods", [None, [], 7])
def test_without_such_a_wish_the_secret_is_sent_in_the_header(
    page: Page, provider: Provider, methods: Any
) -> None:
    provider.described["token_endpoint_auth_methods_supported"] = methods
    assert page.sign_in("1").status_code == (503 if methods else 201)


def test_the_request_to_the_provider_has_what_the_standards_ask(
    service: Running, page: Page
) -> None:
    urls = [urlsplit(page.begin().json()["url"]) for _ in range(2)]
    first, second = (parse_qs(url.query) for url in urls)
    assert first["redirect_uri"] == [f"{service.url}/sign-in"]
    assert first["response_type"] == ["code"]
    assert first["client_id"] == [CLIENT_ID]
    assert first["scope"] == ["openid profile email"]
    assert first["code_challenge_method"] == ["S256"]
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name][0]) >= 43
        assert first[name] != second[name]


def test_cookies_are_hidden_from_scripts_and_other_sites(page: Page) -> None:
    begun = page.begin()
    state = SimpleCookie(begun.headers["Set-Cookie"])[f"{SIGN_ON_COOKIE}_{page.port}"]
    assert (state["httponly"], state["samesite"], state["path"]) == (True, "strict", "/v1/sign-on")
    assert state["max-age"] == "600"
    secure = page.http.post(
        "/v1/sign-on", json={}, headers={"Origin": f"https://127.0.0.1:{page.port}"}
    )
    assert "Secure" in secure.headers["Set-Cookie"]
    asked = parse_qs(urlsplit(begun.json()["url"]).query)
    assert asked["state"][0] not in state.value
    signed_in = page.sign_in("1")
    given = SimpleCookie(", ".join(signed_in.headers.get_list("Set-Cookie")))
    session = given[f"{COOKIE}_{page.port}"]
    assert (session["httponly"], session["samesite"], session["path"]) == (True, "strict", "/v1")
    assert page.cookie(SIGN_ON_COOKIE) is None, "it is used once"


# ---- Answers of the provider that are not to this sign-in


def refused(page: Page, answer: dict[str, str], status: int = 403) -> str:
    """Why an answer gives no session."""
    name = "sign-on-refused" if status == 403 else "invalid-request"
    problem = assert_problem(page.finish(answer), status, name)
    assert page.cookie() is None
    return str(problem["detail"])


def test_an_answer_with_another_state_is_refused(page: Page, provider: Provider) -> None:
    answer = page.answer("1")
    for state in ("", "x", answer["state"][:-1], answer["state"].upper(), "ä"):
        assert "another sign-in" in refused(page, answer | {"state": state})
    assert "/token" not in provider.asked
    refused(page, {"code": answer["code"]}, 422)
    assert page.finish(answer).status_code == 201


def test_an_answer_is_refused_in_a_browser_that_did_not_ask(
    browser: Callable[[Running], Page], service: Running, page: Page
) -> None:
    """Otherwise a link would sign its reader in as its writer."""
    answer = page.answer("1")
    other = browser(service)
    assert "not begun in this browser" in refused(other, answer)
    other.begin()
    assert "another sign-in" in refused(other, answer)


def test_a_code_is_good_for_one_sign_in(page: Page) -> None:
    answer = page.answer("1")
    kept = page.cookie(SIGN_ON_COOKIE)
    assert page.finish(answer).status_code == 201
    page.http.cookies.clear()
    assert "not begun in this browser" in refused(page, answer)
    name = f"{SIGN_ON_COOKIE}_{page.port}"
    page.http.cookies.set(name, str(kept), domain="127.0.0.1", path="/v1/sign-on")
    assert "does not accept the code" in refused(page, answer)


def test_a_code_of_another_sign_in_is_refused(
    browser: Callable[[Running], Page], service: Running, page: Page
) -> None:
    """PKCE: the code belongs to the verifier of the other browser."""
    theirs = browser(service).answer("2")
    mine = page.answer("1")
    assert "does not accept the code" in refused(page, mine | {"code": theirs["code"]})


def test_a_sign_in_that_takes_too_long_is_refused(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = page.answer("1")
    now = time.time()
    monkeypatch.setattr("joserfc._rfc7519.claims.time.time", lambda: now + 601)
    assert "longer than 10 minutes" in refused(page, answer)


@pytest.mark.parametrize("forged", ["", "x", "a.b.c.d.e", "eyJhbGciOiJub25lIn0.e30."])
def test_a_forged_cookie_is_refused(page: Page, forged: str) -> None:
    answer = page.answer("1")
    name = f"{SIGN_ON_COOKIE}_{page.port}"
    page.http.cookies.set(name, forged, domain="127.0.0.1", path="/v1/sign-on")
    assert "not begun in this browser" in refused(page, answer)


def test_an_answer_of_another_issuer_is_refused(page: Page, provider: Provider) -> None:
    answer = page.answer("1")
    assert "another provider" in refused(page, answer | {"iss": "https://evil.example"})
    assert page.finish(answer | {"iss": provider.url}).status_code == 201


def test_a_refusal_of_the_provider_is_told(page: Page) -> None:
    answer = page.answer("nobody")
    assert answer["error"] == "access_denied"
    answer.pop("error_description", None)
    assert "access_denied" in refused(page, answer)


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "evil",
        "javascript:alert(1)", "", "/a\nb", "/a b", "/\tevil.example", "/" + "a" * 2000,
    ],
)  # fmt: skip
def test_a_sign_in_leads_to_pages_of_the_service_only(page: Page, path: str) -> None:
    assert_problem(page.begin(return_to=path), 422, "invalid-request")


@pytest.mark.parametrize("path", ["/", "/models/mdl_1?tab=maps", "/datasets/ds_1#top"])
def test_a_sign_in_leads_back_to_the_page_where_it_began(page: Page, path: str) -> None:
    assert page.finish(page.answer("1", return_to=path)).json()["return_to"] == path


# ---- ID tokens that are not valid


def resigned(change: Callable[[Claims], object]) -> Callable[[Provider], str]:
    """The right token with other claims."""

    def forge(provider: Provider) -> Callable[[dict[str, Any], Claims], str]:
        def make(header: dict[str, Any], claims: Claims) -> str:
            change(claims)
            return jwt.encode(header, claims, provider.key)

        return make

    return forge  # type: ignore[return-value]


def _part(document: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def _by_stranger(provider: Provider) -> Any:
    key = RSAKey.generate_key(2048, {"kid": provider.key.kid})
    return lambda header, claims: jwt.encode(header, claims, key)


def _with_own_key(provider: Provider) -> Any:
    key = RSAKey.generate_key(2048, {"kid": "mine"})

    def make(header: dict[str, Any], claims: Claims) -> str:
        embedded = {"alg": "RS256", "kid": "mine", "jwk": key.as_dict(private=False)}
        return jwt.encode(embedded, claims, key)

    return make


def _unsigned(alg: str) -> Any:
    return lambda provider: lambda header, claims: f"{_part({'alg': alg})}.{_part(claims)}."


def _hmac(secret_of: Callable[[Provider], bytes]) -> Any:
    """HS256 with something that is known: the public key or the secret of the client."""

    def forge(provider: Provider) -> Any:
        def make(header: dict[str, Any], claims: Claims) -> str:
            signed = f"{_part({'alg': 'HS256', 'kid': provider.key.kid})}.{_part(claims)}"
            digest = hmac.digest(secret_of(provider), signed.encode(), hashlib.sha256)
            return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"

        return make

    return forge


def _altered(provider: Provider) -> Any:
    def make(header: dict[str, Any], claims: Claims) -> str:
        head, _, signature = jwt.encode(header, claims, provider.key).split(".")
        return f"{head}.{_part(claims | {'groups': ['auditors']})}.{signature}"

    return make


BAD_TOKENS: dict[str, Any] = {
    "no nonce": resigned(lambda c: c.pop("nonce")),
    "another nonce": resigned(lambda c: c.update(nonce="x")),
    "another audience": resigned(lambda c: c.update(aud=["another"])),
    "a longer audience": resigned(lambda c: c.update(aud=f"{CLIENT_ID}-2")),
    "no audience": resigned(lambda c: c.pop("aud")),
    "an empty audience": resigned(lambda c: c.update(aud=[])),
    "two audiences without party": resigned(lambda c: c.update(aud=[CLIENT_ID, "another"])),
    "another party": resigned(lambda c: c.update(azp="another")),
    "two audiences, another party": resigned(
        lambda c: c.update(aud=[CLIENT_ID, "another"], azp="another")
    ),
    "another issuer": resigned(lambda c: c.update(iss="https://evil.example")),
    "an issuer with a slash": resigned(lambda c: c.update(iss=c["iss"] + "/")),
    "no issuer": resigned(lambda c: c.pop("iss")),
    "expired": resigned(lambda c: c.update(exp=int(time.time()) - 120)),
    "no expiry": resigned(lambda c: c.pop("exp")),
    "expiry as text": resigned(lambda c: c.update(exp="9999999999")),
    "issued in the future": resigned(lambda c: c.update(iat=int(time.time()) + 600)),
    "no time of issue": resigned(lambda c: c.pop("iat")),
    "valid in the future": resigned(lambda c: c.update(nbf=int(time.time()) + 600)),
    "no subject": resigned(lambda c: c.pop("sub")),
    "an empty subject": resigned(lambda c: c.update(sub="")),
    "a number as subject": resigned(lambda c: c.update(sub=1)),
    "another access token": resigned(lambda c: c.update(at_hash="x" * 22)),
    "a stranger's signature": _by_stranger,
    "a key within the token": _with_own_key,
    "none": _unsigned("none"),
    "None": _unsigned("None"),
    "RS256 without signature": _unsigned("RS256"),
    "HMAC of the public key": _hmac(lambda p: p.key.as_pem(private=False)),
    "HMAC of the secret": _hmac(lambda p: CLIENT_SECRET.encode()),
    "altered claims": _altered,
    "no token": lambda provider: lambda header, claims: "",
    "not a token": lambda provider: lambda header, claims: "a.b.c",
}


@pytest.mark.parametrize("name", BAD_TOKENS)
def test_an_id_token_that_is_not_valid_is_refused(
    page: Page, provider: Provider, name: str
) -> None:
    provider.forge = BAD_TOKENS[name](provider)
    detail = refused(page, page.answer("1"))
    assert detail.startswith("the ID token is not valid")
    provider.forge = None
    assert page.sign_in("1").status_code == 201


def test_an_id_token_of_another_sign_in_is_refused(
    browser: Callable[[Running], Page], service: Running, page: Page, provider: Provider
) -> None:
    stolen: list[str] = []

    def keep(header: dict[str, Any], claims: Claims) -> str:
        stolen.append(jwt.encode(header, claims, provider.key))
        return stolen[-1]

    provider.forge = keep
    assert browser(service).sign_in("2").status_code == 201
    provider.forge = lambda header, claims: stolen[0]
    assert "nonce" in refused(page, page.answer("1"))


def test_a_party_beside_two_audiences_is_accepted_if_it_is_us(
    page: Page, provider: Provider
) -> None:
    provider.forge = resigned(lambda c: c.update(aud=["another", CLIENT_ID], azp=CLIENT_ID))(
        provider
    )  # type: ignore[assignment]
    assert page.sign_in("1").status_code == 201


def test_new_keys_of_the_provider_are_read_and_old_ones_forgotten(
    page: Page, provider: Provider
) -> None:
    assert page.sign_in("1").status_code == 201
    old = provider.key
    provider.rotate_key("second")
    assert page.sign_in("1").status_code == 201
    provider.asked.clear()
    assert page.sign_in("1").status_code == 201
    assert "/keys" not in provider.asked, "the keys are kept"
    provider.forge = lambda header, claims: jwt.encode(header | {"kid": old.kid}, claims, old)
    page.http.cookies.clear()
    refused(page, page.answer("1"))


# ---- A provider that does not do what it should


def down(provider: Provider) -> None:
    def hang_up() -> Any:
        raise ConnectionError

    provider.answers["/.well-known/openid-configuration"] = hang_up


def drip() -> Iterator[bytes]:
    for _ in range(40):
        time.sleep(0.1)
        yield b" "


def big() -> Any:
    return b"[" + b"1," * 2**20


def at(path: str, answer: Callable[[], Any]) -> Callable[[Provider], None]:
    return lambda provider: provider.answers.update({path: answer})


def described(**members: Any) -> Callable[[Provider], None]:
    return lambda provider: provider.described.update(members)


CONFIGURATION = "/.well-known/openid-configuration"
DRIPS = "a dripping description"
BAD_PROVIDERS: dict[str, tuple[Callable[[Provider], None], str]] = {
    "an error": (at(CONFIGURATION, lambda: ("down", 500)), "answered 500"),
    "a slow description": (at(CONFIGURATION, lambda: time.sleep(1.5)), "did not answer within 1 s"),
    DRIPS: (at(CONFIGURATION, drip), "did not answer within 1 s"),
    "a huge description": (at(CONFIGURATION, big), "too long"),
    "a page": (at(CONFIGURATION, lambda: "<html>"), "not a JSON object"),
    "a list": (at(CONFIGURATION, lambda: "[]"), "not a JSON object"),
    "a redirect": (
        at(CONFIGURATION, lambda: ("", 302, {"Location": "http://127.0.0.1:1/"})),
        "answered 302",
    ),
    "another name": (described(issuer="https://evil.example"), "must be the same text"),
    "no keys": (described(jwks_uri=None), "names no jwks_uri"),
    "keys elsewhere": (described(jwks_uri="https://evil.example/keys"), "not allowed"),
    "keys on the machine": (described(jwks_uri="file:///etc/passwd"), "names no jwks_uri"),
    "keys in the network": (described(jwks_uri="http://169.254.169.254/latest"), "not allowed"),
    "keys that are none": (at("/keys", lambda: {"keys": [{"kty": "RSA"}]}), "cannot be read"),
    "empty keys": (at("/keys", lambda: {"keys": []}), "cannot be read"),
    "a script as page": (
        described(authorization_endpoint="javascript:alert(1)"),
        "names no authorization_endpoint with the scheme https",
    ),
    "half a URL as page": (described(authorization_endpoint="https://["), "names no authorization"),
    "no page": (described(authorization_endpoint=7), "names no authorization_endpoint"),
    "a script to sign out": (described(end_session_endpoint="data:,x"), "names no end_session"),
    "deep": (at(CONFIGURATION, lambda: "[" * 100_000), "not a JSON object"),
}


@pytest.mark.parametrize("name", BAD_PROVIDERS if AT_LENGTH else sorted({*BAD_PROVIDERS} - {DRIPS}))
def test_a_sign_in_cannot_begin_at_a_provider_that_is_not_well(
    page: Page, provider: Provider, name: str
) -> None:
    misbehave, why = BAD_PROVIDERS[name]
    misbehave(provider)
    began = time.monotonic()
    problem = assert_problem(page.begin(), 503, "provider-unavailable")
    assert why in problem["detail"]
    assert time.monotonic() - began < 1.5
    provider.behave()
    assert page.sign_in("1").status_code == 201, "the provider is asked again"


@pytest.mark.parametrize(
    ("answer", "status", "why"),
    [
        (lambda: ("down", 500), 503, "answered 500"),
        *first_of(
            (drip, 503, "did not answer within 1 s"),
            (lambda: time.sleep(1.5), 503, "did not answer within 1 s"),
        ),
        (lambda: ({"error": "invalid_client"}, 401), 503, "(invalid_client)"),
        (lambda: ({"error": "<b>"}, 400), 503, "answered 400, not"),
        (lambda: ["a"], 503, "not a JSON object"),
    ],
)
def test_a_sign_in_cannot_end_at_a_provider_that_is_not_well(
    page: Page, provider: Provider, answer: Any, status: int, why: str
) -> None:
    told = page.answer("1")
    provider.answers["/token"] = answer
    problem = assert_problem(page.finish(told), status, "provider-unavailable")
    assert why in problem["detail"]
    assert page.cookie() is None


def test_a_provider_that_is_away_is_told_at_once(
    browser: Callable[[Running], Page], start: Callable[..., Running], provider: Provider
) -> None:
    settings = sign_on_settings(provider)
    gone = f"http://127.0.0.1:{free_port('127.0.0.1', 0)}"
    page = browser(start(**settings | {"oidc_issuer": gone}))
    problem = assert_problem(page.begin(), 503, "provider-unavailable")
    assert problem["detail"] == f"no connection to {gone} (ConnectError); try again later"
    assert_problem(page.http.get("/v1/session"), 401, "unauthorized")


def test_a_provider_within_the_network_needs_leave(
    browser: Callable[[Running], Page], start: Callable[..., Running], provider: Provider
) -> None:
    page = browser(start(**sign_on_settings(provider, outside_networks=())))
    problem = assert_problem(page.begin(), 503, "provider-unavailable")
    assert "GCVAE_OUTSIDE_NETWORKS" in problem["detail"]


# ---- Settings

NO_URL = "is not a URL https://{host}/{path} without user, query and fragment"
NO_JSON = "expected value at line 1 column 1"
RIGHT = '{"group": {"workspace": "acme", "scopes": ["read"]}} is right'


@pytest.mark.parametrize(
    ("setting", "given", "why"),
    [
        ("oidc_groups", "analysts=acme", f"it is not JSON ({NO_JSON}); {RIGHT}"),
        ("oidc_groups", '["analysts"]', f"Input should be a valid dictionary; {RIGHT}"),
        ("oidc_groups", '{"a": "acme"}', None),
        ("oidc_groups", '{"a": {"workspace": "x", "scopes": ["read"]}, "a": {}}', None),
        ("oidc_groups", '{"a": {"workspace": "acme"}}', f"a: scopes: Field required; {RIGHT}"),
        ("oidc_groups", '{"a": {"workspace": "acme", "scopes": []}}', None),
        ("oidc_groups", '{"a": {"workspace": "", "scopes": ["read"]}}', None),
        ("oidc_groups", '{"a": {"workspace": "acme", "scope": "read"}}', None),
        (
            "oidc_groups",
            '{"a": {"workspace": "acme", "scopes": ["read", "all"]}}',
            f"a: scopes: 1: Input should be 'read', 'write' or 'admin'; {RIGHT}",
        ),
        ("oidc_issuer", "login.example.com", f"'login.example.com' {NO_URL}"),
        ("oidc_issuer", "http://login.example.com", None),
        ("oidc_issuer", "http://localhost.example.com", None),
        ("oidc_issuer", "https://", None),
        ("oidc_issuer", "https://login.example.com?a=b", None),
        ("oidc_issuer", "https://me:word@login.example.com", None),
        ("oidc_redirect_uri", "https://gcvae.example.com/callback", None),
        ("oidc_redirect_uri", "http://gcvae.example.com/sign-in", None),
        ("oidc_scopes", "profile email", None),
    ],
)  # fmt: skip
def test_a_setting_that_does_not_fit_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, setting: str, given: str, why: str | None
) -> None:
    variable = f"GCVAE_{setting.upper()}"
    monkeypatch.setenv(variable, given)
    with pytest.raises(WrongUsageError) as caught:
        read_server_settings()
    assert str(caught.value).startswith(f"{variable}: ")
    assert why is None or str(caught.value) == f"{variable}: {why}"


def test_settings_that_miss_others_stop_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GCVAE_OIDC_ISSUER", "https://login.example.com")
    monkeypatch.setenv("GCVAE_OIDC_CLIENT_ID", "gcvae")
    monkeypatch.setenv("GCVAE_OIDC_REDIRECT_URI", "https://gcvae.example.com/sign-in")
    with pytest.raises(WrongUsageError) as caught:
        read_server_settings()
    named = "GCVAE_OIDC_CLIENT_SECRET, GCVAE_OIDC_GROUPS"
    assert str(caught.value) == f"the settings: single sign-on also needs {named}"
    for name, content in (("CLIENT_SECRET", "s3cret\n"), ("GROUPS", json.dumps(GROUPS))):
        (tmp_path / name).write_text(content)
        monkeypatch.setenv(f"GCVAE_OIDC_{name}_FILE", str(tmp_path / name))
    settings = read_server_settings(host="0.0.0.0")
    assert settings.oidc_client_secret == "s3cret"
    assert [*settings.oidc_groups] == [*GROUPS]
    refuse_open_address(settings)  # nobody gets in without signing in


@pytest.mark.parametrize(
    "url",
    ["https://a.example", "https://a.example:8443/x/", "http://localhost:1", "http://[::1]:1/x"],
)
def test_the_issuer_may_be_a_secure_server_or_this_machine(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    given = {"CLIENT_ID": "x", "CLIENT_SECRET": "x", "GROUPS": json.dumps(GROUPS)}
    given |= {"ISSUER": url, "REDIRECT_URI": "http://127.0.0.1:8000/sign-in"}
    for name, value in given.items():
        monkeypatch.setenv(f"GCVAE_OIDC_{name}", value)
    assert read_server_settings().oidc_issuer == url


def test_empty_settings_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET", "REDIRECT_URI", "GROUPS"):
        monkeypatch.setenv(f"GCVAE_OIDC_{name}", "")
    assert read_server_settings().oidc_issuer == ""


# ---- Sessions


def test_a_service_with_sign_on_needs_no_keys_and_lets_nobody_in(page: Page) -> None:
    refused = page.http.get("/v1/datasets")
    problem = assert_problem(refused, 401, "unauthorized")
    assert problem["sign_on"] == "/v1/sign-on"


def test_a_sign_on_needs_the_mark_and_the_origin_of_our_pages(page: Page) -> None:
    for path in ("/v1/sign-on", "/v1/sign-on/answer"):
        for headers in ({PAGE_HEADER: ""}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
            sent = {name: value for name, value in headers.items() if value}
            bare = httpx.post(f"{str(page.http.base_url).rstrip('/')}{path}", json={}, headers=sent)
            assert_problem(bare, 403, "foreign-site")
    page.sign_in("2")
    bare = httpx.post(
        f"{str(page.http.base_url).rstrip('/')}/v1/datasets",
        content=b"a\n1\n",
        cookies=page.http.cookies,
    )
    assert_problem(bare, 403, "foreign-site")


def test_a_session_is_never_one_that_the_browser_brought(service: Running, page: Page) -> None:
    name = f"{COOKIE}_{page.port}"
    page.http.cookies.set(name, "chosen", domain="127.0.0.1", path="/v1")
    page.sign_in("1")
    first = str(page.cookie())
    assert first != "chosen"
    page.sign_in("2")
    assert page.cookie() != first
    old = httpx.get(f"{service.url}/v1/session", headers={"Cookie": f"{name}={first}"})
    assert_problem(old, 401, "unauthorized")


def change_session(service: Running, columns: str) -> None:
    with service.catalog.database.engine.begin() as connection:
        assert connection.execute(text(f"UPDATE sessions SET {columns}")).rowcount >= 1
    time.sleep(FRESH_SECONDS)


def no_sessions(service: Running) -> None:
    with service.catalog.database.engine.begin() as connection:
        connection.execute(text("DELETE FROM sessions"))


def test_the_token_of_a_session_is_replaced_and_a_copy_ends_the_session(
    service: Running, page: Page
) -> None:
    no_sessions(service)
    page.sign_in("1")
    first = str(page.cookie())
    assert page.http.patch("/v1/session").json()["is_due"] is False
    assert page.cookie() == first
    change_session(service, "renewed_at = renewed_at - 901")
    assert page.http.get("/v1/session").json()["is_due"] is True
    renewed = page.http.patch("/v1/session")
    assert renewed.json()["is_due"] is False
    left = int(SimpleCookie(renewed.headers["Set-Cookie"])[f"{COOKIE}_{page.port}"]["max-age"])
    assert 43_190 <= left <= 43_200, "the session does not last longer"
    assert page.cookie() != first
    old = {"Cookie": f"{COOKIE}_{page.port}={first}"}
    assert httpx.get(f"{service.url}/v1/jobs", headers=old).status_code == 200, "under way"
    change_session(service, "renewed_at = renewed_at - 61")
    assert page.http.get("/v1/jobs").status_code == 200
    assert_problem(httpx.get(f"{service.url}/v1/jobs", headers=old), 401, "unauthorized")
    time.sleep(FRESH_SECONDS)
    assert_problem(page.http.get("/v1/jobs"), 401, "unauthorized")


def test_a_session_opens_no_other_session(page: Page) -> None:
    """Otherwise it would last for ever."""
    page.sign_in("1")
    assert_problem(page.http.post("/v1/session"), 409, "conflict")


def test_signing_out_ends_the_session_and_names_the_page_of_the_provider(
    page: Page, provider: Provider
) -> None:
    page.sign_in("1")
    url = urlsplit(page.http.get("/v1/session").json()["sign_out_url"])
    assert f"{url.scheme}://{url.netloc}{url.path}" == f"{provider.url}/end_session"
    assert parse_qs(url.query) == {
        "client_id": [CLIENT_ID],
        "post_logout_redirect_uri": [provider.redirect_uri],
    }
    token = page.cookie()
    assert page.http.delete("/v1/session").status_code == 204
    kept = {"Cookie": f"{COOKIE}_{page.port}={token}"}
    assert_problem(page.http.get("/v1/jobs", headers=kept), 401, "unauthorized")


def test_sessions_of_people_end_when_the_operator_ends_sign_on(
    browser: Callable[[Running], Page], start: Callable[..., Running], provider: Provider
) -> None:
    settings = sign_on_settings(provider)
    service = start(**settings)
    page = browser(service)
    page.sign_in("1")
    _, key = service.catalog.keys.create("acme", "", [Scope.READ, Scope.WRITE])
    same = {"home_dir": service.settings.home_dir, "port": 0, "preload_torch": False}
    with running(type(service.settings)(**same)) as without:  # type: ignore[arg-type]
        cookie = {"Cookie": f"{COOKIE}_{urlsplit(without.url).port}={page.cookie()}"}
        refused = without.http.get("/v1/jobs", headers=cookie)
        assert "sign_on" not in assert_problem(refused, 401, "unauthorized")
        begin = partial(without.http.post, "/v1/sign-on", json={})
        assert_problem(begin(headers=OURS), 401, "unauthorized")
        problem = assert_problem(begin(headers={"Authorization": f"Bearer {key}"}), 409, "conflict")
        assert problem["detail"] == "single sign-on is not configured (GCVAE_OIDC_ISSUER)"


def test_keys_stay_for_programs(service: Running, page: Page) -> None:
    _, key = service.catalog.keys.create("elsewhere", "", [Scope.READ])
    headers = {"Authorization": f"Bearer {key}"}
    assert page.http.get("/v1/session", headers=headers).json()["workspace"] == "elsewhere"
    page.sign_in("1")
    assert page.http.get("/v1/session", headers=headers).json()["workspace"] == "elsewhere"


# ---- The records


def test_sign_ins_refusals_and_sign_outs_stand_in_the_audit_log(
    service: Running, page: Page
) -> None:
    answers = [
        page.sign_in("2"),
        page.http.delete("/v1/session"),
        page.sign_in("3"),
        page.finish({"state": "x", "code": "y"}),
    ]
    requests = [answer.headers["X-Request-ID"] for answer in answers]
    lines: list[AuditEntry] = []
    until = time.monotonic() + 20
    while len(lines) < 4 and time.monotonic() < until:  # a line is written after the answer
        lines = [line for line in service.catalog.audit.entries() if line.request_id in requests]
    answer, path = "POST /v1/sign-on/answer", "/v1/sign-on/answer"
    assert [(line.action, line.status) for line in lines] == [
        (answer, 201), ("DELETE /v1/session", 204), (answer, 403), (answer, 403),
    ]  # fmt: skip
    person = lines[0].actor
    assert person.startswith("usr_")
    assert [line.actor for line in lines] == [person, person, "anyone", "anyone"]
    assert [line.workspace for line in lines] == ["acme", "acme", "", ""]
    assert lines[0].subject == f"{path}: Bo"
    assert lines[2].subject.startswith(f"{path}: Cy is in no group")
    assert lines[3].subject == f"{path}: the answer belongs to another sign-in; sign in again"
    page.sign_in("2")
    seen = page.http.get("/v1/audit").json()["items"]
    assert (person, f"{path}: Bo") in [(line["actor"], line["subject"]) for line in seen]
    assert "Cy" not in repr(seen), "who was refused belongs to no workspace"


def test_secrets_stand_in_no_log_error_or_record(
    service: Running, page: Page, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    tokens: list[str] = []

    def keep(header: dict[str, Any], claims: Claims) -> str:
        tokens.append(jwt.encode(header, claims, provider.key))
        return tokens[-1]

    provider.forge = keep
    answers = [page.answer("2")]
    kept = [page.cookie(SIGN_ON_COOKIE)]
    shown = [page.finish(answers[0]).text]
    kept.append(page.cookie())
    assert page.http.get("/sign-in", params=answers[0]).status_code == 200
    answers.append(page.answer("3"))
    shown.append(page.finish(answers[1]).text)
    provider.answers["/token"] = lambda: ({"error": "invalid_client"}, 401)
    answers.append(page.answer("1"))
    shown.append(page.finish(answers[2]).text)
    provider.answers["/token"] = lambda: (_ for _ in ()).throw(ConnectionError)
    answers.append(page.answer("1"))
    shown.append(page.finish(answers[3]).text)
    shown += [entry.subject for entry in service.catalog.audit.entries()]
    ours = [r for r in caplog.records if not re.match("MainThread|.*request_thread", r.threadName)]
    assert len(ours) > 20, "records of the service, not of the browser and the provider"
    shown += [f"{record.getMessage()} {record.__dict__}" for record in ours]
    with service.catalog.database.engine.connect() as connection:
        shown += [repr(connection.execute(text("SELECT * FROM sessions")).all())]
    hidden = [CLIENT_SECRET, *tokens, *provider.tokens, *filter(None, kept)]
    hidden += [answer[name] for answer in answers for name in ("code", "state")]
    assert len(hidden) >= 15
    everything = "\n".join(shown)
    assert [secret for secret in hidden if secret in everything] == []
    assert CLIENT_SECRET not in repr(service.settings)


def test_steps_of_sign_ons_are_limited(
    browser: Callable[[Running], Page], start: Callable[..., Running], provider: Provider
) -> None:
    page = browser(start(**sign_on_settings(provider, max_requests_per_minute=20)))
    answers = [page.finish({"state": "x"}) for _ in range(5)]
    assert [answer.status_code for answer in answers[:4]] == [403] * 4
    assert_problem(answers[4], 429, "too-many-requests")


def test_the_answer_is_a_form_of_its_own(page: Page) -> None:
    for body in (
        {},
        {"state": 1},
        {"state": "x", "error": "\0"},
        {"state": "x" * 201},
        {"state": "x", "cod": "y"},
    ):
        assert_problem(page.finish(body), 422, "invalid-request")  # type: ignore[arg-type]
    raw = {"content": b'{"state": "\\ud800"}', "headers": {"Content-Type": "application/json"}}
    assert_problem(page.http.post("/v1/sign-on/answer", **raw), 422, "invalid-request")  # type: ignore[arg-type]
    assert_problem(page.finish({"state": "x", "code": "y" * 70_000}), 413, "too-large")
    assert_problem(page.http.get("/v1/sign-on"), 405, "method-not-allowed")
    assert_problem(page.http.post("/v1/sign-on/none", json={}), 404, "not-found")
    query = urlencode({"state": "x"})
    assert_problem(page.http.post(f"/v1/sign-on?{query}", json={}), 422, "invalid-request")
