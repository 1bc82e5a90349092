"""The page of a report: what it shows of a document, and that no text of it is markup."""

from __future__ import annotations

import re
from copy import deepcopy
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae.evaluation.report.page import html_page
from gcvae.training.reporting.model_report import make_report

HOSTILE = """</b><script>alert('x')</script>" onclick='y' {{ 7 * 7 }} {% raw %} &amp;"""
WORDS = {"verdict", "unit", "worse", "learner", "name", "of"}
"""Members whose values are words of the format."""


@pytest.fixture(scope="module", name="document")
def _document() -> dict[str, Any]:
    numbers = np.random.default_rng(0)
    real, unseen, drawn = (
        pd.DataFrame({"a": numbers.normal(size=150), "b": numbers.integers(0, 3, 150).astype(str)})
        for _ in range(3)
    )
    return make_report(None, real, unseen, drawn).to_json()


class Elements(HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, css: str) -> list[dict[str, str | None]]:
        """The attributes of the elements of a class."""
        return [attributes for _, attributes in self.elements if attributes.get("class") == css]


def with_texts(value: Any, text: str) -> Any:
    """A document with another text in the place of each of its free ones."""
    if isinstance(value, dict):
        return {k: v if k in WORDS else with_texts(v, text) for k, v in value.items()}
    if isinstance(value, list):
        return [with_texts(each, text) for each in value]
    return text if isinstance(value, str) else value


def test_no_text_of_a_document_is_markup(document: dict[str, Any]) -> None:
    plain = Elements(html_page(with_texts(document, "plain"), "plain"))
    hostile = Elements(html_page(with_texts(document, HOSTILE), HOSTILE))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert [set(a) for _, a in hostile.elements] == [set(a) for _, a in plain.elements]
    assert hostile.text.count(HOSTILE) > 30
    shortened = f"{HOSTILE[:14]}…{HOSTILE[-4:]}"
    assert shortened in hostile.text


def test_bars_are_as_long_as_the_shares_and_a_share_of_few_rows_is_told_as_few(
    document: dict[str, Any],
) -> None:
    changed = deepcopy(document)
    changed["fidelity"]["worst_columns"] = [
        {"column": "c", "labels": ["x", "y"], "real": [0.8, None], "drawn": [0.4, 0.6]}
    ]
    changed["fidelity"]["worst_pairs"] = [
        {
            "columns": ["c", "d"],
            "labels": [["x", "y"], ["u"]],
            "real": [[0.64], [None]],
            "drawn": [[0.16], [0.0]],
        }
    ]
    page = Elements(html_page(changed))
    real, drawn = page.named("r"), page.named("d")
    assert [found["style"] for found in real] == ["width:100.0%", "width:0.0%", "opacity:1.0"]
    assert [found["style"] for found in drawn] == [
        "width:50.0%", "width:75.0%", "opacity:0.53", "opacity:0.06",
    ]  # fmt: skip
    assert [found["title"] for found in page.named("few")] == ["y, u: few"]
    assert drawn[-2]["title"] == "x, u: 16.0\u00a0%"
    shown = re.sub(r"\s+", " ", page.text)
    assert "80 → 40 %" in shown
    assert "few → 60 %" in shown


def test_a_long_table_ends_after_thirty_lines(document: dict[str, Any]) -> None:
    changed = deepcopy(document)
    pair = changed["fidelity"]["pairs"][0]
    for n, said in ((30, False), (1_231, True)):
        changed["fidelity"]["pairs"] = [pair] * n
        page = html_page(changed)
        assert page.count(" × ".join(pair["columns"])) < 40
        assert ("1,201 more are in the JSON document" in page) is said


def test_a_report_of_an_older_version_says_so(document: dict[str, Any]) -> None:
    older = {k: v for k, v in document.items() if k not in ("judged", "decisions")}
    page = html_page(older)
    assert "This report was made by an older version. Make a new one." in page
    assert document["headline"] in page
    assert "older version" not in html_page(document)


@pytest.mark.parametrize(
    ("name", "verdict", "of_rows", "words"),
    [
        ("privacy", "green", "green", "✓ green: no leak found"),
        ("privacy", "red", "red", "✕ red: do not share"),
        ("privacy", "red", "green", "✕ red: concerns the model"),
        ("likelihood", "amber", None, "! amber: concerns the model"),
        ("fidelity", "amber", None, "! amber: review before sharing"),
        ("utility", "not_measured", None, "– not measured"),
    ],
)
def test_a_badge_says_what_is_judged(
    document: dict[str, Any], name: str, verdict: str, of_rows: str | None, words: str
) -> None:
    part = document[name] | {"verdict": verdict}
    if of_rows:
        part["leaks"] = part.get("leaks", {}) | {"rows": of_rows}
    page = html_page(document | {name: part})
    assert page.count(f'<span class="badge {verdict}">{words}</span>') >= 2


def test_a_page_has_nothing_from_elsewhere(document: dict[str, Any]) -> None:
    assert html_page(document).startswith("<!doctype html>\n")
    page = Elements(html_page(document))
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.elements}
    addresses = {a.get("href") for tag, a in page.elements if tag == "a"}
    assert addresses == {"#fidelity", "#utility", "#likelihood", "#privacy"}
