"""The page of webhooks: one is added, tested and deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.long.browser.conftest import PHONE, Watched
from tests.running_service import OUTSIDE, Running, running, settings_in
from tests.servers.webhook_receiver import Receiver, receiver


@pytest.fixture
def target() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    with running(settings_in(tmp_path, **OUTSIDE)) as found:
        yield found


@pytest.mark.parametrize("look", [{}, {"viewport": PHONE, "color_scheme": "dark"}])
def test_a_webhook_is_added_tested_and_deleted(
    watch: Callable[..., Watched], service: Running, target: Receiver, look: dict[str, object]
) -> None:
    watched = watch(service, expected=("/v1/webhooks",), **look)
    page = watched.page
    watched.go("/jobs")
    page.get_by_role("link", name="Webhooks").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Webhooks")
    expect(page.get_by_text("There are no webhooks.")).to_be_visible()

    page.get_by_label("URL").fill("https://example.com/hook")
    page.get_by_role("button", name="Add webhook").click()
    expect(page.get_by_role("alert")).to_contain_text("host 'example.com' is not allowed")

    page.get_by_label("URL").fill(f"{target.url}/hook")
    page.get_by_label("Report ready").uncheck()
    page.get_by_role("button", name="Add webhook").click()
    expect(page.get_by_text("The webhook was added")).to_be_visible()
    expect(page.locator("code").filter(has_text="whsec_")).to_be_visible()

    page.get_by_role("button", name="Send a test event").click()
    page.get_by_label("URL").focus()
    expect(page.get_by_text("delivered (204)")).to_be_visible()
    assert target.events()[0]["type"] == "ping"
    watched.assert_accessible()

    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("There are no webhooks.")).to_be_visible()
    watched.assert_well()
