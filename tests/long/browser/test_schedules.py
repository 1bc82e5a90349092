"""The page of schedules: one is added, run, paused and deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.gcvae_cli.test_sources import table
from tests.long.browser.conftest import PHONE, Watched
from tests.running_service import Running, running, settings_in


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    (tmp_path / "files").mkdir()
    with closing(sqlite3.connect(tmp_path / "files/shop.sqlite")) as lite:
        table().to_sql("orders", lite, index=False)
    settings = settings_in(tmp_path / "service", connection_folder=tmp_path / "files")
    with running(settings) as found:
        yield found


@pytest.mark.parametrize("look", [{}, {"viewport": PHONE, "color_scheme": "dark"}])
def test_a_schedule_is_added_run_paused_and_deleted(
    watch: Callable[..., Watched], service: Running, look: dict[str, object]
) -> None:
    watched = watch(service, expected=("/v1/schedules",), **look)
    page = watched.page
    watched.go("/datasets")
    page.get_by_role("link", name="Schedules").click()
    expect(page.get_by_text("Schedules read tables from connections")).to_be_visible()
    service.http.post("/v1/connections", json={"name": "shop", "url": "sqlite:///shop.sqlite"})

    watched.go("/schedules")
    page.get_by_label("Name", exact=True).fill("nightly")
    page.get_by_label("Table name, SQL query or file path").fill("order")
    page.get_by_label("Times (cron)").fill("61 3 * * *")
    page.get_by_role("button", name="Add schedule").click()
    expect(page.get_by_role("alert")).to_contain_text("bad minute")
    page.get_by_label("Times (cron)").fill("0 3 * * *")
    page.get_by_role("button", name="Add schedule").click()
    expect(page.get_by_role("heading", name="nightly")).to_be_visible()
    expect(page.get_by_text("There were no runs yet.")).to_be_visible()

    page.get_by_role("button", name="Run now").click()
    page.get_by_label("Name", exact=True).focus()
    expect(page.get_by_text("the database has no table 'order'")).to_be_visible(timeout=60_000)
    watched.assert_accessible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()

    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("There are no schedules.")).to_be_visible()
    watched.assert_well()
