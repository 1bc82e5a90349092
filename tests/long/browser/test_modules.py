"""What the pages compute themselves agrees with what Python computes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae.evaluation.report.page import html_page
from gcvae.training.reporting.model_report import make_report
from tests.long.browser.conftest import Watched
from tests.running_service import Running

FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y",
    "%m/%d/%y %I:%M %p",
    "%d %b %Y",
    "%B %d, %Y",
    "%Y%m%d",
)
MOMENTS = (datetime(2026, 11, 3, 0, 5, 9, tzinfo=UTC), datetime(1999, 2, 28, 12, 59, tzinfo=UTC))


@pytest.fixture
def compute(site: Running, watch: Callable[..., Watched]) -> Callable[[str, str, Any], Any]:
    watched = watch(site)
    watched.go("/")
    watched.page.get_by_role("heading", level=1).wait_for()

    def call(module: str, function: str, arguments: Any) -> Any:
        script = f"async (a) => (await import('/assets/{module}')).{function}(...a)"
        return watched.page.evaluate(script, arguments)

    return call


def test_dates_are_read_as_their_format_says(compute: Callable[[str, str, Any], Any]) -> None:
    for form in FORMATS:
        for moment in MOMENTS:
            text = moment.strftime(form)
            meant = datetime.strptime(text, form).replace(tzinfo=UTC)
            assert compute("moments.js", "momentOf", [text, form]) == meant.timestamp() * 1000, text


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_csv_is_cut_as_python_cuts_it(
    compute: Callable[[str, str, Any], Any], separator: str, line_end: str
) -> None:
    rows = [["név", "b", "c"], ["1", "", 'a "quoted" word'], [f"x{separator}y", "two\nlines", "€"]]
    written = io.StringIO()
    csv.writer(written, delimiter=separator, lineterminator=line_end).writerows(rows)
    assert compute("rows.js", "csvRows", [written.getvalue()]) == rows
    assert compute("rows.js", "csvRows", [compute("rows.js", "csvText", [rows])]) == rows


def test_a_share_above_zero_never_reads_zero(compute: Callable[[str, str, Any], Any]) -> None:
    shares = {0: "0 %", 0.0003: "< 0.1 %", 0.004: "0.4 %", 0.0996: "10 %", 0.5: "50 %", 1: "100 %"}
    assert {share: compute("words.js", "shareText", [share]) for share in shares} == shares


def test_infinite_scores_are_numbers(compute: Callable[[str, str, Any], Any]) -> None:
    text = '{"a": [-Infinity, 1.5], "b": Infinity, "c": "x"}'
    found = compute("api.js", "parsed", [text])
    assert found == {"a": [float("-inf"), 1.5], "b": float("inf"), "c": "x"}
    assert compute("api.js", "parsed", ['{"a": "of, Infinity"}']) == {"a": "of, Infinity"}


def test_an_answer_that_breaks_off_is_told(site: Running, watch: Callable[..., Watched]) -> None:
    watched = watch(site)
    watched.go("/")
    script = """async () => {
      const { bodyOf } = await import('/assets/api.js');
      const lost = new TypeError('Failed to fetch');
      const broken = new ReadableStream({ start: (sink) => sink.error(lost) });
      return bodyOf(new Response(broken)).catch((error) => error.document.title);
    }"""
    assert watched.page.evaluate(script) == "The answer broke off"


def test_the_report_shows_what_its_page_shows(site: Running, watch: Callable[..., Watched]) -> None:
    numbers = np.random.default_rng(0)
    real, unseen, drawn = (
        pd.DataFrame({"a": numbers.normal(size=150), "b": numbers.integers(0, 3, 150).astype(str)})
        for _ in range(3)
    )
    report = make_report(None, real, unseen, drawn).to_json()
    watched = watch(site)
    watched.go("/")
    script = "async (r) => (await import('/assets/report.js')).sections(r).map(e => e.textContent)"
    said = " ".join(watched.page.evaluate(script, report))
    shares = [
        value
        for part in ("fidelity", "utility", "likelihood", "privacy")
        for figure in report[part]["figures"]
        if figure["unit"] == "share" and (figure["value"] or 0) > 0.001
        for value in (figure["value"], figure["floor"], *(figure["interval"] or ()))
    ]
    assert len(shares) > 30
    page = html_page(report)
    for share in filter(None, shares):
        assert f"{100 * share:.1f}\u00a0%".replace("-", "−") in page  # on one line
        assert f"{100 * share:.1f} %".replace("-", "−") in said
    for attack in report["privacy"]["attacks"]:
        assert attack["label"] in said
        for one in attack["true_positive_rates"]:
            few = f"not measurable with {attack['rows_of_each_class']} rows"
            assert (few if one["rate"] is None else f"{100 * one['rate']:.1f} % (") in said
    assert report["privacy"]["sentence"] in said
