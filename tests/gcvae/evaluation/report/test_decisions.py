"""What a report says of sharing rows and model follows from its parts, whatever else it says."""

from __future__ import annotations

from typing import Any

import pytest

from gcvae.evaluation.report.decisions import decisions, headline
from gcvae.evaluation.report.parts import Part


def _parts(fidelity: str, utility: str, rows: str, model: str, **tables: Any) -> dict[str, Part]:
    leaks = {"leaks": {"rows": rows, "model": model}} | tables
    return {
        "fidelity": Part(fidelity, ""),
        "utility": Part(utility, ""),
        "likelihood": Part("amber", ""),
        "privacy": Part(model, "", tables=leaks),
    }


@pytest.mark.parametrize(
    ("found", "rows", "model"),
    [
        (("green", "green", "green", "green"), "green no finding", "green no attack"),
        (("green", "green", "green", "amber"), "green no finding", "amber share it"),
        (("green", "green", "green", "red"), "green no finding", "red do not share it"),
        (("green", "green", "amber", "red"), "amber share them only", "red do not share it"),
        (
            ("green", "green", "red", "red"),
            "red do not share them. They reveal",
            "red do not share it",
        ),
        (("red", "green", "amber", "amber"), "red do not share them as they are", "amber share"),
        (("green", "red", "green", "green"), "red do not share them as they are", "green no"),
        (("amber", "green", "green", "green"), "amber review the findings", "green no"),
        (
            ("amber", "green", "not_measured", "amber"),
            "not_measured do not share them yet",
            "amber share it",
        ),
        (
            ("green", "green", "not_measured", "not_measured"),
            "not_measured do not share them yet",
            "not_measured do not share it",
        ),
        (
            ("not_measured", "green", "green", "green"),
            "not_measured do not share them yet. There are",
            "green no",
        ),
        (
            ("not_measured", "amber", "green", "green"),
            "not_measured do not share them yet. There are",
            "green no",
        ),
        (("not_measured", "green", "amber", "amber"), "amber share them only", "amber share it"),
        (("not_measured", "red", "green", "green"), "red do not share them as they", "green no"),
        (
            ("red", "green", "not_measured", "not_measured"),
            "red do not share",
            "not_measured do not share",
        ),
    ],
)
def test_rows_and_model_are_decided_each_by_itself(
    found: tuple[str, str, str, str], rows: str, model: str
) -> None:
    of_rows, of_model = decisions(_parts(*found), are_from_model=True)
    assert f"{of_rows.verdict} {of_rows.sentence.removeprefix('Synthetic rows: ')}".startswith(rows)
    assert f"{of_model.verdict} {of_model.sentence.removeprefix('Model: ')}".startswith(model)


def test_a_table_of_real_rows_is_stopped_first_of_all() -> None:
    copies = {"are_real_rows": True, "drawn_rows_that_are_real": 1611, "drawn_rows": 2000}
    parts = _parts("green", "green", "red", "red", exact_copies=copies)
    [decision] = decisions(parts, are_from_model=False)
    assert decision.verdict == "red"
    assert decision.sentence.startswith("Synthetic rows: do not share them. Many")
    assert "1,611 of the 2,000" in decision.sentence


def test_of_a_table_that_was_given_the_model_is_not_decided() -> None:
    [decision] = decisions(_parts("green", "green", "green", "green"), are_from_model=False)
    assert decision.of == "rows"


def test_questions_without_an_answer_are_counted() -> None:
    parts = _parts("green", "not_measured", "not_measured", "not_measured")
    assert headline(parts, are_from_model=True).endswith("2 of the 4 parts could not be measured.")
    nothing = {name: Part("not_measured", "") for name in parts}
    assert headline(nothing, are_from_model=True) == "Nothing could be measured."
