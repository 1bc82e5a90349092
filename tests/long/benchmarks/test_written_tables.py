"""Tables of pages that a benchmark writes are those of the results beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import differential_privacy, memory
from benchmarks.pages_of_results import replaced_part
from benchmarks.private_peers import __main__ as private_peers

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results"


@pytest.mark.parametrize(
    ("page", "part", "lines", "results"),
    [
        (
            differential_privacy.PAGE,
            differential_privacy.PART,
            differential_privacy.lines_of_page,
            "differential-privacy-2026-11-25.json",
        ),
        (
            differential_privacy.PAGE,
            private_peers.PART,
            private_peers.lines_of_page,
            "private-peers-2026-11-25.json",
        ),
        (memory.PAGE, memory.PART, memory.lines_of_page, "memory-2026-11-25.json"),
    ],
)
def test_a_page_shows_the_figures_of_its_results(
    page: Path, part: str, lines: Callable[[dict[str, Any]], str], results: str
) -> None:
    text = (ROOT / page).read_text()
    assert results in text
    found = lines(json.loads((RESULTS / results).read_text()))
    assert replaced_part(text, part, found) == text


def test_a_page_without_the_part_is_not_written_to() -> None:
    with pytest.raises(AssertionError, match="the page has no part 'costs'"):
        replaced_part("nothing here", "costs", "lines")
