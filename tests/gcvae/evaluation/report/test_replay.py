"""Replay: personal cells and rare texts of the real table in drawn rows; 0, or red."""

from __future__ import annotations

import pandas as pd
import pytest

from gcvae import infer_schema
from gcvae.evaluation.report.replay import replayed
from gcvae.schema.columns import TableSchema
from gcvae.training.reporting.model_report import make_report

REAL = pd.DataFrame(
    {
        "email": [f"anna.meier{i}@web.de" for i in range(80)],
        "first_name": [f"Anna{chr(97 + i % 20)}" for i in range(80)],
        "last_name": [f"Meier{chr(97 + i // 20)}" for i in range(80)],
        "note": ["call first"] * 40 + ["leave at the door"] * 37 + ["lives with Jo"] * 3,
        "n": [i % 7 for i in range(80)],
    }
)
SCHEMA = infer_schema(REAL, rules=False).schema
FRESH = REAL.assign(
    email=[f"bo.smith{i}@example.org" for i in range(80)],
    last_name="Smith",
    note=["call first"] * 80,
)


def counts(drawn: pd.DataFrame, schema: TableSchema = SCHEMA, **options: bool) -> dict[str, object]:
    return replayed(schema, REAL, drawn, rare_rows=5, **options).to_json()


def test_fresh_cells_are_no_replay() -> None:
    assert counts(FRESH) == {
        "cells": 0,
        "personal": {"first_name and last_name": 0, "email": 0},
        "rare_texts": {},
    }


def test_cells_and_pairs_of_names_and_rare_texts_are_counted() -> None:
    drawn = FRESH.copy()
    drawn.loc[:2, "email"] = REAL["email"][5:8].to_numpy()
    drawn.loc[4, "last_name"] = "Meiera"
    drawn.loc[7:8, "note"] = "lives with Jo"
    found = counts(drawn)
    assert found["cells"] == 6
    assert found["personal"] == {"first_name and last_name": 1, "email": 3}
    assert found["rare_texts"] == {"note": 2}


def test_levels_that_a_model_kept_are_not_rare() -> None:
    drawn = FRESH.assign(note="lives with Jo")
    assert counts(drawn, with_levels=True)["rare_texts"] == {}


def test_a_column_that_is_said_not_to_be_personal_is_not_counted() -> None:
    said = {"columns": [{"name": "note", "personal": False}, {"name": "email", "personal": False}]}
    schema = infer_schema(REAL, said, rules=False).schema
    drawn = FRESH.assign(note="lives with Jo", email=REAL["email"])
    assert counts(drawn, schema)["cells"] == 0


@pytest.mark.parametrize("leak", [False, True])
def test_a_report_without_unseen_rows_is_red_with_replay_alone(leak: bool) -> None:
    report = make_report(None, REAL, synthetic=REAL.assign(n=3) if leak else FRESH)
    privacy = report.parts["privacy"].to_json()
    [figure] = [figure for figure in privacy["figures"] if figure["name"] == "replay"]
    assert figure["verdict"] == ("red" if leak else "green")
    assert privacy["verdict"] == ("red" if leak else "not_measured")
    assert ("no personal data" in privacy["sentence"]) is not leak
    assert privacy["replay"]["cells"] == figure["value"]
    assert not any(text in report.to_html() for text in REAL["email"])
