"""Somebody signs in at the provider with a browser, is refused there or here, and signs out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import text

from catalog.records import Scope
from service.keyring import FRESH_SECONDS
from tests.catalog.conftest import add_dataset
from tests.long.browser.conftest import PHONE, Watched
from tests.running_service import Running, running, settings_in
from tests.servers.identity_provider import Provider, identity_provider
from tests.service.test_sign_on import PEOPLE, sign_on_settings
from tests.service.test_sign_on import Page as HttpBrowser

Watch = Callable[..., Watched]
SIGN_IN = "Sign in with your organisation"
REFUSALS = ("/v1/session", "/v1/sign-on/answer", "/v1/sign-on", "/favicon.ico")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with identity_provider() as found:
        found.people = {sub: {**claims} for sub, claims in PEOPLE.items()}
        yield found


@pytest.fixture
def service(tmp_path: Path, provider: Provider) -> Iterator[Running]:
    with running(settings_in(tmp_path, **sign_on_settings(provider))) as found:
        yield found


def sign_in(page: Page, person: str) -> None:
    page.get_by_role("button", name=SIGN_IN).click()
    page.get_by_role("button", name=person, exact=True).click()


@pytest.mark.parametrize("look", [{}, {"viewport": PHONE, "color_scheme": "dark"}])
def test_somebody_signs_in_with_the_provider_and_out_again(
    watch: Watch, service: Running, provider: Provider, look: dict[str, object]
) -> None:
    watched = watch(service, REFUSALS, provider.url, **look)
    page = watched.page
    watched.go("/models?status=ready")
    expect(page.get_by_role("button", name=SIGN_IN)).to_be_visible()
    watched.assert_accessible()
    sign_in(page, "Bo")
    expect(page.get_by_role("heading", level=1)).to_have_text("Models")
    assert page.url == f"{service.url}/models?status=ready", "where it began, and without the code"
    if not look:
        expect(page.get_by_text("acme · Bo")).to_be_visible()
    watched.assert_accessible()
    kept = page.evaluate(
        "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])"
    )
    assert kept == '["",{},{}]'
    [session] = page.context.cookies()
    assert (session["httpOnly"], session["sameSite"], session["path"]) == (True, "Strict", "/v1")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Models")

    provider.asked.clear()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name=SIGN_IN)).to_be_visible()
    assert page.url == f"{service.url}/sign-in"
    assert "/end_session" in provider.asked
    assert page.context.cookies() == []
    page.go_back()
    expect(page.get_by_role("button", name=SIGN_IN)).to_be_visible()
    watched.assert_well()


@pytest.mark.parametrize("look", [{}, {"viewport": PHONE}])
def test_who_may_not_use_the_service_is_told_why(
    watch: Watch, service: Running, provider: Provider, look: dict[str, object]
) -> None:
    watched = watch(service, REFUSALS, provider.url, **look)
    page = watched.page
    watched.go("/")
    sign_in(page, "Cy")
    expect(page.get_by_role("alert")).to_contain_text("Cy is in no group that may use this service")
    assert page.url == f"{service.url}/sign-in"
    watched.assert_accessible()
    sign_in(page, "Nobody")
    expect(page.get_by_role("alert")).to_contain_text("access_denied")
    provider.described["issuer"] = "https://another.example"
    service.resources.sign_on._known = None  # type: ignore[union-attr]
    page.get_by_role("button", name=SIGN_IN).click()
    expect(page.get_by_role("alert").last).to_contain_text("must be the same text")
    provider.behave()
    sign_in(page, "Ada")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def test_a_link_with_the_answer_of_somebody_else_signs_nobody_in(
    watch: Watch, service: Running, provider: Provider
) -> None:
    attacker = HttpBrowser(service)
    with attacker.http, attacker.at_provider:
        link = f"{service.url}/sign-in?{urlencode(attacker.answer('2'))}"
    mine = watch(service, REFUSALS, provider.url)
    mine.page.goto(link)
    expect(mine.page.get_by_role("alert")).to_contain_text("not begun in this browser")
    assert mine.page.url == f"{service.url}/sign-in"
    assert mine.page.context.cookies() == []


def test_another_workspace_is_not_found_and_a_session_ends(
    watch: Watch, service: Running, provider: Provider
) -> None:
    theirs = add_dataset(service.catalog, workspace="acme").id
    watched = watch(service, (*REFUSALS, theirs, "limit=25", "/profile"), provider.url)
    page = watched.page
    watched.go(f"/datasets/{theirs}")
    sign_in(page, "Di")
    expect(page.get_by_role("heading", level=2)).to_have_text("Not found")
    assert page.url == f"{service.url}/datasets/{theirs}"
    with service.catalog.database.engine.begin() as connection:
        connection.execute(text("UPDATE sessions SET used_at = used_at - 7201"))
    page.wait_for_timeout(1000 * FRESH_SECONDS)
    page.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.get_by_text("Your session has ended.")).to_be_visible()
    _, key = service.catalog.keys.create("acme", "", [Scope.READ])
    page.get_by_text("Use an API key instead").click()
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")


def test_the_token_of_an_open_page_is_replaced(
    watch: Watch, service: Running, provider: Provider
) -> None:
    provider.people["1"]["email"] = f"{'ada' * 60}@example.com"  # the page does not grow wider
    watched = watch(service, REFUSALS, provider.url)
    page = watched.page
    watched.go("/")
    sign_in(page, "Ada")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    [before] = page.context.cookies()
    with service.catalog.database.engine.begin() as connection:
        connection.execute(text("UPDATE sessions SET renewed_at = renewed_at - 901"))
    page.reload()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    [after] = page.context.cookies()
    assert after["value"] != before["value"]
    page.get_by_role("link", name="Models", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Models")
