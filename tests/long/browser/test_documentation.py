"""The page of the REST API draws itself under a policy that allows no script inside."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.long.browser.conftest import Watched
from tests.running_service import Running


def test_the_rest_page_shows_its_calls(watch: Callable[..., Watched], guarded: Running) -> None:
    visitor = watch(guarded)
    visitor.go("/docs")
    expect(visitor.page.get_by_text("/v1/datasets/{dataset_id}/schema").first).to_be_visible()
    visitor.page.locator("#operations-health-tell_alive_healthz_get").click()
    expect(visitor.page.get_by_text("Check that the process responds.")).to_be_visible()
