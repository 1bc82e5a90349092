"""docs/paper.md is written from the results that are kept, and says no more than they do."""

from __future__ import annotations

from pathlib import Path

from experiments.__main__ import ROOT
from experiments.markdown import spread
from experiments.page import render_page

PAGE = ROOT / "docs" / "paper.md"


def test_the_page_is_what_its_results_make() -> None:
    made = render_page(ROOT / "experiments" / "results", PAGE.parent / "images/paper", PAGE.parent)
    assert PAGE.read_text() == made


def test_without_results_nothing_is_told(tmp_path: Path) -> None:
    page = render_page(tmp_path, tmp_path / "images", tmp_path)
    assert "Verdict" not in page
    assert "Not made yet" in page


def test_a_spread_is_the_mean_and_the_deviation() -> None:
    assert spread([1.0, 2.0, 3.0]) == "2.00 ± 1.00"
    assert spread([-1.5]) == "−1.50"
    assert spread([], sign=True) == "–"
    assert spread([0.25, 0.75], sign=True) == "+0.50 ± 0.35"
