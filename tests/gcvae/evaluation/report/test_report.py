"""Known answers: what a report says of tables of which the truth is known."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.errors import TableError, UnknownColumnError
from gcvae.evaluation.report.documents import PARTS, Part, TableReport
from gcvae.evaluation.report.fidelity import fidelity_part
from gcvae.evaluation.report.histograms import column_shares, pair_shares
from gcvae.evaluation.report.privacy import privacy_part
from gcvae.evaluation.report.rows import KeptRule, ReportRows
from gcvae.evaluation.report.utility import utility_part
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.training.reporting.model_report import make_report
from gcvae.training.reporting.report_rows import rows_of_report
from tests.wordings import refuses

_N = 700


def _table(n_rows: int, seed: int) -> pd.DataFrame:
    """Numbers, dates, levels in several scripts and missing cells, which depend on each other."""
    random = np.random.default_rng(seed)
    x = random.normal(size=n_rows)
    return pd.DataFrame(
        {
            "größe": x.round(3),
            "重さ": (2 * x + random.normal(size=n_rows)).round(2),
            "день": pd.Timestamp("2020-01-01") + pd.to_timedelta((100 * x).round(), unit="D"),
            "<level>": np.where(x + 0.5 * random.normal(size=n_rows) > 0, "α & β", "אב"),
            "blank": np.where(random.random(n_rows) < 0.2, np.nan, np.round(x**2, 2)),
        }
    )


def _rows(real: pd.DataFrame, unseen: pd.DataFrame, drawn: pd.DataFrame) -> ReportRows:
    return rows_of_report(None, real, unseen, drawn, seed=0)


def _fidelity(drawn: pd.DataFrame, unseen: pd.DataFrame | None = None) -> tuple[Part, str | None]:
    return fidelity_part(_rows(REAL, HOLDOUT if unseen is None else unseen, drawn), seed=0)


def _privacy(real: pd.DataFrame, unseen: pd.DataFrame, drawn: pd.DataFrame) -> Part:
    rows = _rows(real, unseen, drawn)
    n_rows = min(len(rows.members), len(unseen))
    return privacy_part(rows, {}, n_rows, mismatch=None, seed=0)


LEVELS = TableSchema((Column("k", ColumnKind.CATEGORICAL, levels=("α & β",)),))
REAL, HOLDOUT, OTHER = _table(_N, 1), _table(_N, 2), _table(_N, 3)


def _verdicts(report: TableReport) -> dict[str, str]:
    return {name: report.parts[name].verdict for name in PARTS}


def _attacks(part: Part) -> dict[str, Any]:
    return {attack["name"]: attack for attack in part.tables["attacks"]}


def test_the_training_table_itself_is_a_material_leak() -> None:
    part = _privacy(REAL, HOLDOUT, REAL)
    assert part.verdict == "red"
    assert _attacks(part)["copies"]["verdict"] == "red"
    assert _attacks(part)["copies"]["rate_members"] == 1.0
    assert "exact copies" in part.sentence


def test_unseen_rows_are_at_every_floor_and_no_leak() -> None:
    part = _privacy(REAL, HOLDOUT, OTHER)
    assert part.verdict == "green"
    assert "No leak found" in part.sentence
    assert "safe" not in part.sentence
    like_real, mismatch = _fidelity(OTHER)
    assert (like_real.verdict, mismatch) == ("green", None)
    for figure in like_real.figures:
        if figure.floor is not None and figure.value is not None:
            assert figure.value == pytest.approx(figure.floor, abs=0.06), figure.name


def test_a_table_of_real_rows_is_found_though_unseen_ones_are_among_them() -> None:
    """Members and unseen rows are copied alike: no attack can tell, and the copies do."""
    part = _privacy(REAL, HOLDOUT, pd.concat([REAL, HOLDOUT], ignore_index=True))
    assert part.verdict == "red"
    assert "are real rows" in part.sentence
    copies = part.tables["exact_copies"]
    assert copies["drawn_rows_that_are_real"] == copies["drawn_rows"] == 2 * _N
    assert copies["are_real_rows"]
    assert f"{2 * _N:,} of the {2 * _N:,} synthetic rows" in part.sentence


def test_rows_that_anyone_may_have_are_no_copies_of_a_table() -> None:
    """Of two coins every row is a copy: of real rows, too."""
    coins = [
        pd.DataFrame({"a": generator.choice(["x", "y"], _N), "b": generator.choice(["u", "v"], _N)})
        for generator in map(np.random.default_rng, (1, 2, 3))
    ]
    part = _privacy(*coins)
    assert part.verdict == "green"
    copies = part.tables["exact_copies"]
    assert copies["drawn_rows_that_are_real"] == copies["expected_of_real_rows"] == _N
    assert not copies["are_real_rows"]


def test_so_few_rows_that_only_a_large_leak_would_be_seen_are_no_green() -> None:
    part = _privacy(_table(300, 8), _table(40, 9), _table(300, 10))
    assert part.verdict == "not_measured"
    assert "no evidence of safety" in part.sentence
    assert "report_share" in part.advice
    assert all(found["verdict"] == "green" for found in part.tables["attacks"])


@pytest.mark.slow
def test_columns_that_are_shuffled_by_themselves_are_unlike_and_no_leak() -> None:
    random = np.random.default_rng(4)
    shuffled = OTHER.apply(lambda column: column.to_numpy()[random.permutation(_N)])
    assert _privacy(REAL, HOLDOUT, shuffled).verdict == "green"
    assert _fidelity(shuffled)[0].verdict == "red"
    useful = utility_part(_rows(REAL, HOLDOUT, shuffled), ["<level>"], seed=0)
    assert useful.verdict == "red"


def test_what_few_unseen_rows_can_not_show_is_no_green() -> None:
    rows = _rows(_table(400, 8), _table(40, 9), _table(400, 10))
    part, _ = fidelity_part(rows, seed=0)
    assert part.verdict == "not_measured"
    assert part.sentence.startswith("Too few rows to judge")
    assert "report_share" in part.advice


def _sensors(seed: int, *, has_course: bool = True) -> pd.DataFrame:
    """A temperature with a daily course, or with as much spread and none."""
    random = np.random.default_rng(seed)
    minutes = np.sort(random.integers(0, 60 * 24 * 60, _N))
    angle = minutes / 1440 if has_course else random.random(_N)
    return pd.DataFrame(
        {
            "time": pd.Timestamp("2024-01-01") + pd.to_timedelta(minutes, unit="min"),
            "warmth": (3 * np.sin(2 * np.pi * angle) + random.normal(size=_N)).round(2),
            "room": random.choice(["a", "b"], _N),
        }
    )


def test_a_daily_course_that_is_lost_is_no_green() -> None:
    kept, lost = (
        fidelity_part(_rows(_sensors(1), _sensors(2), drawn), seed=0)[0]
        for drawn in (_sensors(3), _sensors(3, has_course=False))
    )
    assert _figure(kept, "dependencies").verdict == "green"
    assert lost.verdict == "red"
    assert _figure(lost, "dependencies").verdict == "red"
    assert lost.tables["dependencies"][0]["columns"] == ["time (hour)", "warmth"]
    assert "dependencies between columns differ" in lost.sentence


def test_a_report_holds_the_strongest_dependencies_beside_those_of_drawn_rows() -> None:
    part, _ = _fidelity(OTHER)
    pair, of_two = (
        next(each for each in part.tables["dependencies"] if len(each["columns"]) == n)
        for n in (2, 3)
    )
    assert set(pair["columns"]) == {"größe", "день"}
    assert pair["drawn"] == pytest.approx(pair["real"], abs=pair["error"])
    assert of_two["real"] >= pair["real"] - 0.1


def _figure(part: Part, name: str) -> Any:
    return next(figure for figure in part.figures if figure.name == name)


def test_tables_of_unequal_size_raise_no_alarm() -> None:
    part = _privacy(_table(1_500, 8), _table(200, 9), _table(900, 10))
    assert part.verdict == "green"
    assert _attacks(part)["distance"]["rows_of_each_class"] == 200


def test_without_a_holdout_the_report_says_what_it_did_not_measure_and_why() -> None:
    report = make_report(None, REAL, None, OTHER)
    found = _verdicts(report)
    assert found["fidelity"] == "green"
    for name in ("utility", "likelihood", "privacy"):
        assert found[name] == "not_measured"
        assert report.parts[name].sentence.startswith("Not measured: ")


@pytest.mark.slow
def test_unseen_rows_of_another_source_are_no_evidence() -> None:
    shifted = HOLDOUT.assign(größe=HOLDOUT["größe"] + 3)
    _, mismatch = _fidelity(OTHER, shifted)
    assert mismatch is not None
    rows = _rows(REAL, shifted, OTHER)
    part = privacy_part(rows, {}, 100, mismatch=mismatch, seed=0)
    assert part.verdict == "not_measured"
    assert "not from the same source" in part.sentence


@pytest.mark.parametrize("n_rows", [2, 40])
def test_few_rows_have_a_report(n_rows: int) -> None:
    few = _table(n_rows, 11)
    report = make_report(None, few, few.iloc[::-1], few)
    json.dumps(report.to_json(), allow_nan=False)
    assert report.to_html()


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    settings = {"max_steps": 30, "report_share": 0.4}
    return Synthesizer.fit(REAL, preset="fast", settings=settings, seed=1)


@pytest.fixture(scope="module")
def of_model(fitted: Synthesizer) -> TableReport:
    shares: list[float] = []
    report = fitted.report(REAL, seed=3, targets=["<level>"], progress=shares.append)
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    return report


def test_rows_that_training_held_back_are_the_unseen_ones(of_model: TableReport) -> None:
    assert of_model.rows == {"members": 378, "reference": 42, "unseen": 280, "drawn": 420}
    assert "row by row" not in of_model.parts["privacy"].sentence
    assert {"likelihood", "likelihood_ratio"} <= _attacks(of_model.parts["privacy"]).keys()
    assert of_model.parts["likelihood"].verdict != "not_measured"


def test_a_loaded_model_has_the_same_report(fitted: Synthesizer, of_model: TableReport) -> None:
    again = Synthesizer.from_bytes(fitted.to_bytes())
    assert again.report(REAL, seed=3, targets=["<level>"]).to_json() == of_model.to_json()


def test_the_bound_on_epsilon_stands_beside_the_ledger(
    fitted: Synthesizer, of_model: TableReport
) -> None:
    (figure,) = (f for f in of_model.parts["privacy"].figures if f.name == "epsilon")
    assert (figure.red, figure.verdict) == (None, "shown")
    assert "trained without differential privacy" in figure.note
    private = Synthesizer.from_bytes(fitted.to_bytes())
    private.training_record["differential_privacy"] = {"epsilon": 9.0, "delta": 1e-6}
    part = private.report(REAL, seed=3, targets=["<level>"]).parts["privacy"]
    (figure,) = (f for f in part.figures if f.name == "epsilon")
    assert (figure.red, figure.verdict) == (9.0, "green")
    assert "training guarantees at most 9 (δ = 1e-06)" in figure.note
    without = of_model.parts["privacy"].tables["epsilon"]
    assert part.tables["epsilon"]["at_least"] <= without["at_least"]  # delta is subtracted


def test_attacks_on_the_models_scores_stay_out_of_the_verdict_on_a_table(
    fitted: Synthesizer,
) -> None:
    rows = rows_of_report(fitted, REAL, None, OTHER, seed=0)
    scores = {"likelihood": np.repeat([1.0, 0.0], 100)}
    part = privacy_part(rows, scores, 100, mismatch=None, seed=0)
    counts = {name: attack["counts"] for name, attack in _attacks(part).items()}
    assert not counts["likelihood"]
    assert counts["distance"]
    assert part.verdict == "green"


def test_a_rule_that_speaks_of_no_row_has_no_share_in_a_report() -> None:
    n = np.arange(200)
    table = pd.DataFrame({"a": n * 7 % 50, "b": n * 3 % 40, "c": np.where(n % 2, n % 9, np.nan)})
    rules = [{"rule": "is_missing(c) if is_missing(a)"}, {"rule": "a ≥ 0 or b < 0", "keep": "hard"}]
    settings = {"max_steps": 10}
    fitted = Synthesizer.fit(
        table, schema={"rules": rules}, preset="fast", settings=settings, seed=1
    )
    model = Synthesizer.from_bytes(fitted.to_bytes())
    first, second = model.training_record["rules"]
    assert ("share" in first, first["share_of_drawn"]) == (False, None)
    assert (second["share"], second["share_of_drawn"]) == (1.0, 1.0)
    kept = rows_of_report(model, table, None, None, seed=0).rules_kept
    assert [(rule.formula, rule.real) for rule in kept] == [("a ≥ 0 or b < 0", 1.0)]


def test_a_table_that_does_not_fit_the_model_is_refused(fitted: Synthesizer) -> None:
    with refuses(TableError, column="größe"):
        fitted.report(REAL.drop(columns="größe"))
    with refuses(UnknownColumnError, column="more"):
        fitted.report(REAL, HOLDOUT.assign(more=1))
    with refuses(TableError, column="größe"):
        fitted.report(REAL, synthetic=OTHER.assign(größe="tall"))
    with refuses(UnknownColumnError, column="prize"):
        fitted.report(REAL, targets=["prize"])


def test_pictures_show_nothing_of_a_few_rows() -> None:
    real, drawn = _table(300, 12), _table(300, 13)
    levels = real["<level>"].astype(object)
    levels.iloc[:4], levels.iloc[4:9] = "of four rows", "of five rows"
    found = column_shares(real.assign(k=levels), drawn.assign(k="α & β"), LEVELS, "k")
    assert "of five rows" in found["labels"]
    assert "of four rows" not in found["labels"]
    assert found["real"][found["labels"].index("all others")] is None
    pair = pair_shares(real.assign(k=levels), drawn.assign(k="α & β"), LEVELS, "k", "k")
    assert min(x for row in pair["real"] for x in row if x is not None) >= 5 / 300


def test_a_boolean_is_shown_in_the_words_of_its_table() -> None:
    table = pd.DataFrame({"paid": pd.array([True, False, True] * 20, "boolean")})
    schema = TableSchema((Column("paid", ColumnKind.BOOLEAN, levels=("no", "yes")),))
    assert column_shares(table, table, schema, "paid")["labels"] == ["yes", "no"]


def test_a_file_in_pieces_has_the_report_of_its_table(fitted: Synthesizer, tmp_path: Path) -> None:
    turned = REAL[list(reversed(REAL.columns))]
    points = tmp_path / "real.csv", tmp_path / "real.parquet"
    turned.to_csv(points[0], index=False)
    turned.to_parquet(points[1], index=False)
    expected = rows_of_report(fitted, REAL, None, OTHER, seed=3)
    assert expected.is_training_table
    for place in points:
        found = rows_of_report(fitted, place, None, OTHER, seed=3)
        assert found.is_training_table
        assert found.table_rows == {"real": _N, "synthetic": _N}
        for name in ("members", "reference", "unseen"):
            pd.testing.assert_frame_equal(getattr(found, name), getattr(expected, name))


def test_of_many_rows_some_are_taken_and_the_report_says_so(
    fitted: Synthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcvae.training.reporting.report_rows.MOST_REPORT_ROWS", 50)
    rows = rows_of_report(fitted, REAL, None, None, seed=3)
    assert rows.counts() == {"members": 50, "reference": 42, "unseen": 50, "drawn": 50}
    assert rows.table_rows == {"real": _N}
    assert not rows.members.merge(rows.unseen).shape[0]


def test_a_rule_is_judged_by_the_share_of_real_rows_that_keep_it() -> None:
    rows = _rows(REAL.head(320), HOLDOUT.head(300), OTHER.head(300))

    def told(drawn: float) -> Part:
        rule = KeptRule("a before b", 0.97, drawn, 1_000, 1_000)
        return fidelity_part(replace(rows, rules_kept=(rule,)), seed=0)[0]

    assert told(0.965).verdict == "green"
    broken = told(0.9)
    assert broken.verdict == "amber"
    assert "some break a rule" in broken.sentence
    assert "“a before b” is broken by 100 of 1,000 synthetic rows" in broken.advice
    assert "with 3.0 % of real rows" in broken.advice


def test_a_notebook_shows_the_headline_and_each_part_in_a_sentence(of_model: TableReport) -> None:
    page = html.unescape(of_model._repr_html_())
    assert of_model.headline in page
    for name, part in of_model.parts.items():
        assert part.sentence in page
        assert f"{name} {part.verdict}".replace("_", " ") in repr(of_model)


def test_the_page_stands_alone_and_names_are_no_markup(of_model: TableReport) -> None:
    page = of_model.to_html()
    assert "http" not in page
    assert "<script" not in page
    assert "<level>" not in page
    assert "&lt;level&gt;" in page
    for part in PARTS:
        assert f'id="{part}"' in page
