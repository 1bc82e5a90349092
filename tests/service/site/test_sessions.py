"""A page signs in with a key: a cookie has its rights, and no other site can use it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import text

from catalog.records import Key, Scope
from service.http.sessions import PAGE_HEADER, SESSION
from service.keyring import FRESH_SECONDS
from tests.running_service import Running, assert_problem
from tests.wordings import same_wording

OURS = {PAGE_HEADER: "1"}


@pytest.fixture
def guarded(start: Callable[..., Running]) -> Running:
    service = start(session_seconds=3600)
    service.catalog.keys.create("elsewhere", "", [Scope.READ])
    return service


def new_key(
    service: Running, *scopes: Scope, expires_at: datetime | None = None
) -> tuple[Key, str]:
    allowed = scopes or (Scope.READ, Scope.WRITE)
    return service.catalog.keys.create("acme", "pages", allowed, expires_at=expires_at)


def sign_in(service: Running, key: str, **headers: str) -> httpx.Response:
    sent = {"Authorization": f"Bearer {key}", **OURS, **headers}
    return httpx.post(f"{service.url}/v1/session", headers=sent)


def cookie_of(service: Running) -> str:
    """The name of its cookie: another service of this host has another one."""
    return f"{SESSION.prefix}_{urlsplit(service.url).port}"


def signed_in(service: Running, key: str) -> httpx.Client:
    token = sign_in(service, key).cookies[cookie_of(service)]
    cookie = {"Cookie": f"{cookie_of(service)}={token}"}
    return httpx.Client(base_url=service.url, headers=cookie, timeout=60)


def test_a_session_has_the_workspace_and_the_scopes_of_its_key(guarded: Running) -> None:
    key, written = new_key(guarded, Scope.READ)
    with signed_in(guarded, written) as page:
        who = page.get("/v1/session").json()
        assert (who["workspace"], who["key_id"], who["scopes"]) == ("acme", key.id, ["read"])
        left = datetime.fromisoformat(who["expires_at"]) - datetime.now(UTC)
        assert timedelta(minutes=59) < left <= timedelta(minutes=60, seconds=5)
        assert page.get("/v1/datasets").status_code == 200
        refused = page.post("/v1/datasets", content=b"a\n1\n", headers=OURS)
        assert_problem(refused, 403, "missing-scope")
        assert page.delete("/v1/session", headers=OURS).status_code == 204


def test_the_cookie_is_for_our_pages_and_the_api_alone(guarded: Running) -> None:
    _, written = new_key(guarded)
    origin = guarded.url.replace("http://", "https://")  # as a proxy with TLS passes it on
    for headers, is_secure in (({}, False), ({"Origin": origin}, True)):
        answer = sign_in(guarded, written, **headers)
        cookie = SimpleCookie(answer.headers["Set-Cookie"])[cookie_of(guarded)]
        assert cookie["httponly"]
        assert cookie["samesite"] == "strict"
        assert cookie["path"] == "/v1"
        assert cookie["max-age"] == "3600"
        assert bool(cookie["secure"]) == is_secure
        assert written not in answer.text
        assert cookie.value not in answer.text


def test_a_change_by_session_needs_the_mark_that_only_our_pages_send(guarded: Running) -> None:
    _, written = new_key(guarded)
    csv = {"Content-Type": "text/csv"}
    with signed_in(guarded, written) as page:
        for headers in (csv, csv | {"Origin": "null"}, csv | OURS | {"Origin": "http://evil.test"}):
            refused = page.post("/v1/datasets", content=b"a,b\n1,2\n", headers=headers)
            assert_problem(refused, 403, "foreign-site")
        assert page.get("/v1/datasets").json()["items"] == []
        table = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i % 3) for i in range(30))
        made = page.post("/v1/datasets", content=table, headers=csv | OURS)
        assert made.status_code == 201


def test_a_service_does_not_heed_the_cookie_of_another_one_of_its_host(guarded: Running) -> None:
    _, written = new_key(guarded)
    token = sign_in(guarded, written).cookies[cookie_of(guarded)]
    others = {"Cookie": f"{SESSION.prefix}={token}; {SESSION.prefix}_1={token}"}
    assert_problem(httpx.get(f"{guarded.url}/v1/jobs", headers=others), 401, "unauthorized")


def test_a_session_ends_with_signing_out(guarded: Running) -> None:
    _, written = new_key(guarded)
    with signed_in(guarded, written) as page, signed_in(guarded, written) as other:
        assert page.get("/v1/jobs").status_code == 200
        out = page.delete("/v1/session", headers=OURS)
        assert out.status_code == 204
        assert SimpleCookie(out.headers["Set-Cookie"])[cookie_of(guarded)]["max-age"] == "0"
        for _ in range(2):  # the second refusal is a remembered one
            problem = assert_problem(page.get("/v1/jobs"), 401, "unauthorized")
            assert "sign in again" in problem["advice"]
        assert other.get("/v1/jobs").status_code == 200, "another session of the key stays"


def test_a_session_ends_with_its_key_and_with_its_time(guarded: Running) -> None:
    key, written = new_key(guarded)
    brief_key, short = new_key(guarded, expires_at=datetime.now(UTC) + timedelta(minutes=5))
    with signed_in(guarded, written) as page, signed_in(guarded, short) as brief:
        assert brief.get("/v1/jobs").status_code == 200
        guarded.catalog.keys.revoke(key.id)
        time.sleep(FRESH_SECONDS)
        problem = assert_problem(page.get("/v1/jobs"), 401, "unauthorized")
        same_wording(problem["detail"])
        with guarded.catalog.database.engine.begin() as connection:
            over = text("UPDATE keys SET expires_at = 1 WHERE id = :id")
            assert connection.execute(over, {"id": brief_key.id}).rowcount == 1
        time.sleep(FRESH_SECONDS)
        assert_problem(brief.get("/v1/jobs"), 401, "unauthorized")
    _, third = new_key(guarded)
    with signed_in(guarded, third) as page:
        with guarded.catalog.database.engine.begin() as connection:
            connection.execute(text("UPDATE sessions SET expires_at = 1"))
        assert_problem(page.get("/v1/jobs"), 401, "unauthorized")
        sign_in(guarded, third)
        with guarded.catalog.database.engine.connect() as connection:
            assert connection.execute(text("SELECT count(*) FROM sessions")).scalar() == 1


def test_nothing_of_a_session_is_kept_that_opens_one(guarded: Running) -> None:
    _, written = new_key(guarded)
    token = sign_in(guarded, written).cookies[cookie_of(guarded)]
    with guarded.catalog.database.engine.connect() as connection:
        kept = connection.execute(text("SELECT * FROM sessions")).all()
    assert kept
    assert token not in repr(kept)
    forged = httpx.get(
        f"{guarded.url}/v1/jobs", headers={"Cookie": f"{cookie_of(guarded)}={kept[0][0]}"}
    )
    assert_problem(forged, 401, "unauthorized")


def test_who_signs_in_and_out_stands_in_the_audit_log(guarded: Running) -> None:
    key, written = new_key(guarded, *Scope)
    assert_problem(sign_in(guarded, written[:-1] + "-"), 401, "unauthorized")
    with signed_in(guarded, written) as page:
        lines = page.get("/v1/audit").json()["items"]
    assert [(line["actor"], line["action"]) for line in lines] == [(key.id, "POST /v1/session")]


def test_a_service_without_keys_has_nothing_to_sign_in_with(service: Running) -> None:
    who = service.http.get("/v1/session").json()
    assert (who["workspace"], who["key_id"], who["expires_at"]) == ("default", None, None)
    assert_problem(service.http.post("/v1/session"), 409, "conflict")
    assert service.http.delete("/v1/session").status_code == 204
