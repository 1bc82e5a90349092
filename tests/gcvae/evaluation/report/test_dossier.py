"""The dossier of a release: its answers on tables with a known leak, and what it tells of cells."""

from __future__ import annotations

import html
import re
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import pandas as pd
import pytest

from gcvae.evaluation.report.dossier import Release, dossier_page
from gcvae.profiling.infer import infer_schema
from gcvae.training.reporting.model_report import make_report
from tests.fitted.models import fitted, mixed_frame
from tests.gcvae.evaluation.report.test_page import HOSTILE, Elements
from tests.gcvae.evaluation.report.test_report import HOLDOUT, OTHER, REAL, _table

QUESTIONS = "Singling out", "Linkability", "Inference"
RELEASE = Release(
    purpose="Tests of a shop",
    retention=None,
    schema=infer_schema(REAL).schema.to_json(),
    record={},
    scoring="full",
    digests={"model.gcvae": "ab" * 32},
    command="gcvae report model.gcvae --real real.csv --seed 0 -o report.json",
    subject="model.gcvae",
)


def _report(drawn: pd.DataFrame, holdout: pd.DataFrame = HOLDOUT) -> dict[str, Any]:
    return make_report(None, REAL, holdout, drawn, targets=["<level>"]).to_json()


@cache
def _of_other() -> dict[str, Any]:
    """The report of a table that has nothing of the real one; nobody changes it."""
    return _report(OTHER)


def _answers(report: dict[str, Any]) -> dict[str, str]:
    """The mark of each question's answer: ✓, !, ✕ or –."""
    page = Elements(dossier_page(report, RELEASE)).text.split("3. Residual risk")[0]
    after = [page.split(f"{name}:")[1].split("?")[1].split() for name in QUESTIONS]
    return {name: words[0] for name, words in zip(QUESTIONS, after, strict=True)}


def test_each_question_is_answered_by_its_attacks() -> None:
    assert _answers(_of_other()) == dict.fromkeys(QUESTIONS, "✓")


def test_real_rows_and_replayed_texts_single_people_out() -> None:
    report = _report(pd.concat([REAL, HOLDOUT], ignore_index=True))
    assert _answers(report) == dict.fromkeys(QUESTIONS, "✕")
    page = dossier_page(report, RELEASE)
    assert page.count("Yes: the judged table contains real rows.") == 3
    report = deepcopy(_of_other())
    report["privacy"]["replay"]["cells"] = 1
    assert _answers(report) == {"Singling out": "✕", "Linkability": "✓", "Inference": "✓"}


@pytest.mark.parametrize(
    "holdout",
    [_table(20, 9), _table(35, 9), HOLDOUT.assign(größe=HOLDOUT["größe"] + 9)],
    ids=["no attack", "too few rows", "another source"],
)
def test_what_is_no_evidence_is_not_measured(holdout: pd.DataFrame) -> None:
    assert _answers(_report(OTHER, holdout)) == dict.fromkeys(QUESTIONS, "–")


def test_a_dossier_of_a_model_names_protections_and_columns_and_no_cell() -> None:
    model = fitted("fast")
    other = mixed_frame().sample(frac=1.0, random_state=0, ignore_index=True)
    report = model.report(mixed_frame(), other.assign(height=other["height"] + 0.1)).to_json()
    record = model.training_record | {"rows_of_withheld_levels": {"group": 7, "weight": 4}}
    ledger = {"epsilon": 3.0, "delta": 1e-6, "neighbours": "tables that differ by one row"}
    schema = model.schema.to_json()
    schema["columns"][1]["maximum"] = 4321.5
    release = replace(RELEASE, schema=schema, record=record | {"differential_privacy": ledger})
    body = dossier_page(report, release).split("</style>")[1]
    page = html.unescape(re.sub(r"(<[^>]*>|\s)+", " ", body))
    for text in (
        "Purpose Tests of a shop Retention not stated",
        "ε = 3, δ = 1e-06, for tables that differ by one row",
        "Identifiers, replaced by new keys key",
        "categorical 2 categories 7",
        "whole numbers; may be missing fewer than 5",
        "numbers with 1 decimal",
        "at most 10,000 synthetic rows (DOMIAS",
        f"training rows {len(mixed_frame())}",
        "ab" * 32,
        RELEASE.command,
    ):
        assert text in page, text
    before = page.split("Annex: the report")[0]
    assert not any(cell in before for cell in ("4321.5", "tall", "short", "2020-01", " cm "))


def test_a_dossier_stands_alone_and_no_text_of_it_is_markup() -> None:
    plain, hostile = (
        Elements(dossier_page(_of_other(), replace(RELEASE, purpose=text, command=text)))
        for text in ("plain", HOSTILE)
    )
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert hostile.text.count(HOSTILE) == 2
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in plain.elements}
