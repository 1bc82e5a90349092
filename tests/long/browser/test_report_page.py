"""The page of a report in a browser: wide and on a phone, light and dark, and on paper."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser

from gcvae.evaluation.report.page import html_page
from gcvae.training.reporting.model_report import make_report
from tests.long.browser.conftest import PHONE, Watched

WIDE = {"width": 1280, "height": 800}
LONG = "a level whose name goes on and on and ends at last"


@pytest.fixture(scope="module")
def page() -> str:
    numbers = np.random.default_rng(0)
    real, unseen, drawn = (
        pd.DataFrame(
            {
                "größe": numbers.normal(size=300),
                "день": pd.Timestamp("2020-01-01")
                + pd.to_timedelta(numbers.integers(0, 900, 300), unit="D"),
                "<level>": numbers.choice([LONG, "b", "W" * 40], 300),
            }
        )
        for _ in range(3)
    )
    return html_page(make_report(None, real, unseen, drawn).to_json(), "model.gcvae")


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("look", ["light", "dark"])
def test_the_page_is_accessible_and_no_wider_than_the_screen(
    browser: Browser, page: str, size: Any, look: Literal["light", "dark"]
) -> None:
    context = browser.new_context(viewport=size, color_scheme=look)
    watched = Watched(context.new_page(), "about:blank", test="report-page")
    watched.page.set_content(page)
    for is_open in (False, True):
        watched.page.evaluate(
            f"document.querySelectorAll('details').forEach(d => d.open = {str(is_open).lower()})"
        )
        watched.assert_well()
        watched.assert_accessible()
    labels = (
        "[...document.querySelectorAll('.label')].filter(e => e.scrollWidth > e.clientWidth + 1)"
    )
    assert watched.page.evaluate(f"{labels}.length") == 0
    context.close()


def test_paper_has_the_figures_open_and_leaves_long_tables_out(browser: Browser, page: str) -> None:
    context = browser.new_context()
    watched = Watched(context.new_page(), "about:blank")
    watched.page.set_content(page)
    watched.page.emulate_media(media="print")
    assert watched.page.get_by_text("95 % interval").first.is_visible()
    assert not watched.page.get_by_text("All columns", exact=True).is_visible()
    assert watched.page.get_by_text("The HTML file has more tables").is_visible()
    context.close()
