"""Fidelity part of a report: how much synthetic rows differ from real rows.

Each difference is compared with its floor, the difference between two samples of real rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gcvae.evaluation.columns import is_number, measured_columns, numbers_of
from gcvae.evaluation.dependencies import Dependency, least_visible, strongest_dependencies
from gcvae.evaluation.fidelity import (
    classifier_two_sample_auc,
    shape_error,
    trend_error,
    two_way_tv,
)
from gcvae.evaluation.report.histograms import column_shares, pair_shares
from gcvae.evaluation.report.parts import (
    MORE_UNSEEN,
    MOST_VISIBLE,
    Figure,
    Part,
    Verdict,
    not_measured,
    percent,
    worst,
)
from gcvae.evaluation.report.row_space import coverage
from gcvae.evaluation.report.rows import KeptRule, ReportRows
from gcvae.progress import Report, report_to_nobody
from gcvae.schema.columns import TableSchema

MOST_ROWS = 5_000
"""Maximum number of rows of each table in comparisons."""
MOST_TREE_ROWS = 2_500
"""Maximum number of rows of each table for classifiers and nearest neighbours."""
LEAST_ROWS = 20
_N_FOLDS = 3
_N_SHOWN = 3
_MOST_REACH = MOST_VISIBLE - 0.6
"""Sampling error of an AUC above which a relevant difference may go undetected."""
_LEAST_VISIBLE = 0.1
"""Dependency in nats that must be detectable in the sample."""
_RARE = 0.01
"""Share of synthetic rows below which violations of a rule do not make the verdict red."""


class Compared(NamedTuple):
    """Three tables of the same size, from which a difference and its floor are measured.

    The measured value is the difference between `real` and the synthetic rows, `drawn`; the floor
    is the difference between `real` and other real rows.
    """

    real: pd.DataFrame
    other: pd.DataFrame
    drawn: pd.DataFrame

    def head(self, n_rows: int) -> Compared:
        """Returns the first `n_rows` rows of each table."""
        return Compared(*(table.head(n_rows) for table in self))


def _compared_rows(rows: ReportRows) -> Compared:
    """Returns equally many rows of each kind, at most `MOST_ROWS`: `real` are unseen rows, `other`
    are training rows. Without unseen rows, each of these is one half of the training rows."""
    if rows.unseen is not None:
        real, other = rows.unseen, rows.members
    else:
        half = len(rows.members) // 2
        real, other = rows.members.iloc[:half], rows.members.iloc[half:]
    n = min(len(real), len(other), len(rows.drawn), MOST_ROWS)
    return Compared(*(t.head(n).reset_index(drop=True) for t in (real, other, rows.drawn)))


def fidelity_part(
    rows: ReportRows, seed: int, report: Report = report_to_nobody
) -> tuple[Part, str | None]:
    """Returns (fidelity part of the report, mismatch).

    The mismatch is a sentence that tells why unseen rows are not comparable with training rows;
    None if they are.

    Args:
        report: Called with the fraction of the work that is done, 0 to 1.
    """
    tables = _compared_rows(rows)
    if len(tables.real) < LEAST_ROWS:
        few = f"{len(tables.real)} rows are too few; {LEAST_ROWS} are needed"
        return not_measured(few, MORE_UNSEEN), None
    schema = rows.schema
    distances, (columns, pairs, _) = _distances(tables, schema)
    report(0.2)
    told = _classifier_figure(tables.head(MOST_TREE_ROWS), schema, seed)
    report(0.8)
    found, n_rows = _dependencies(rows)
    figures = (
        _kept_dependencies(found, n_rows),
        *distances,
        told,
        *_tau(tables, schema),
        *_coverage(tables.head(MOST_TREE_ROWS), schema),
        *_rules(rows),
    )
    report(1.0)
    verdict = worst(figure.verdict for figure in figures)
    if verdict == "green" and _undecided(figures):
        verdict = "not_measured"
    more: dict[str, Any] = {
        "columns": columns,
        "pairs": pairs,
        "rules": _rule_lines(rows),
        "moved_by_hard_rules": list(rows.moved),
        "dependencies": [each.to_json() for each in found],
        "worst_columns": [
            column_shares(tables.real, tables.drawn, schema, each["column"])
            for each in columns[:_N_SHOWN]
        ],
        "worst_pairs": [
            pair_shares(tables.real, tables.drawn, schema, *each["columns"])
            for each in pairs[:_N_SHOWN]
        ],
    }
    part = Part(verdict, *_sentences(verdict, figures, more), figures, more)
    return part, _drift(told, rows, min(len(tables.real), MOST_TREE_ROWS))


def _distances(
    tables: Compared, schema: TableSchema
) -> tuple[list[Figure], list[list[dict[str, Any]]]]:
    """Compares the tables by `shape_error`, `two_way_tv` and `trend_error`. Returns (figures of the
    mean errors, errors of each column or pair), with an entry for each measure."""
    figures, differences = [], []
    for name, label, measure, amber, red in (
        ("columns", "Difference of single columns, mean", shape_error, 0.02, 0.1),
        ("pairs", "Difference of two-way tables, mean over all pairs", two_way_tv, 0.03, 0.08),
        ("trends", "Difference of dependence, mean over all pairs", trend_error, 0.03, 0.08),
    ):
        drawn = measure(tables.real, tables.drawn, schema)
        other = measure(tables.real, tables.other, schema)
        floor = other.value
        note = f"amber {100 * amber:g} percentage points above the floor, red {100 * red:g}"
        limits = floor + amber, floor + red
        figures.append(
            Figure(name, label, drawn.value, floor, None, *limits, note=note, unit="share")
        )
        differences.append(_largest_first(drawn.each, other.each))
    return figures, differences


def _dependencies(rows: ReportRows) -> tuple[list[Dependency], int]:
    """Returns (strongest dependencies in all real rows, number of rows that were compared)."""
    unseen = [] if rows.unseen is None else [rows.unseen]
    real = pd.concat([rows.seen, *unseen], ignore_index=True)
    n = min(len(real), len(rows.drawn), MOST_ROWS)
    return strongest_dependencies(real.head(n), rows.drawn.head(n), rows.schema), n


def _kept_dependencies(found: Sequence[Dependency], n_rows: int) -> Figure:
    """Returns a figure with the smallest share that synthetic rows keep of any dependency.

    Dependencies are compared by the upper limits of their shares. The verdict is `not_measured` if
    no dependency was found and the rows are too few to detect one.
    """
    label = "Strongest dependencies: share kept of the one that is kept least"
    if not found:
        is_blind = least_visible(n_rows) > _LEAST_VISIBLE
        note = f"no dependency exceeds its sampling error in {n_rows:,} rows"
        judged: Verdict = "not_measured" if is_blind else "shown"
        return Figure("dependencies", label, None, note=note, judged=judged)
    least = min(found, key=lambda each: each.most_kept)
    reach = least.error / least.real
    return Figure(
        "dependencies",
        label,
        least.kept,
        1.0,
        (least.kept - reach, least.kept + reach),
        0.75 - reach,
        0.5 - reach,
        worse="lower",
        note=f"{' × '.join(least.columns)}: {least.drawn:.2f} nats in synthetic rows,"
        f" {least.real:.2f} in real rows; worst of {len(found)} dependencies, {n_rows:,} rows",
        unit="share",
    )


def _undecided(figures: Sequence[Figure]) -> list[Figure]:
    return [figure for figure in figures if figure.judged == "not_measured"]


def _largest_first(each: Mapping[Any, float], floors: Mapping[Any, float]) -> list[dict[str, Any]]:
    """Returns a JSON object for each column or pair, the largest error − floor first. `each` has
    the errors, `floors` the errors between two samples of real rows."""
    return [
        {
            **({"column": name} if isinstance(name, str) else {"columns": list(name)}),
            "value": each[name],
            "floor": floors[name],
        }
        for name in sorted(each, key=lambda name: floors[name] - each[name])
    ]


def _classifier_figure(tables: Compared, schema: TableSchema, seed: int) -> Figure:
    """Returns the figure of boosted trees that distinguish synthetic from real rows."""
    found, floor = (
        classifier_two_sample_auc(tables.real, against, schema, n_folds=_N_FOLDS, seed=seed)
        for against in (tables.drawn, tables.other)
    )
    reach = 1.96 * math.sqrt(1 / (6 * max(found.n_rows, 1)))
    figure = Figure(
        "c2st",
        "Detection: boosted trees tell synthetic rows from real rows (C2ST)",
        found.value,
        floor.value,
        (found.value - reach, min(1.0, found.value + reach)),
        0.6 + reach,
        0.8 + reach,
        note=(
            f"share of correctly ordered pairs; guessing: 50 %; {found.n_rows:,} rows of each table"
        ),
        unit="share",
    )
    is_blind = figure.verdict == "green" and reach > _MOST_REACH
    return replace(figure, judged="not_measured") if is_blind else figure


def _drift(c2st: Figure, rows: ReportRows, n_rows: int) -> str | None:
    """Returns a sentence that unseen rows are not from the same source as training rows; None if
    boosted trees cannot distinguish them. `c2st.floor` is the AUC of the trees, on `n_rows` rows of
    each."""
    if rows.unseen is None or c2st.floor is None:
        return None
    if c2st.floor < 0.53 + 4 * math.sqrt(1 / (6 * n_rows)):
        return None
    return (
        "the unseen rows are not from the same source as the training rows: boosted trees tell"
        f" them apart (area under the ROC curve {c2st.floor:.2f}; guessing: 0.50)"
    )


def _tau(tables: Compared, schema: TableSchema) -> list[Figure]:
    numbers = [column for column in measured_columns(schema) if is_number(column)]
    label = "Difference of rank correlations (Kendall's tau), mean over pairs of numeric columns"
    if len(numbers) < 2:
        return [Figure("tau", label, None, note="fewer than two numeric columns")]
    taus = [
        pd.DataFrame({c.name: numbers_of(t, c) for c in numbers[:40]}).head(1_000).corr("kendall")
        for t in (tables.real, tables.drawn, tables.other)
    ]
    above = np.triu_indices(len(taus[0]), 1)
    real, drawn, other = (t.fillna(0.0).to_numpy()[above] for t in taus)
    value, floor = float(np.abs(real - drawn).mean()), float(np.abs(real - other).mean())
    note = "1,000 rows, first 40 numeric columns"
    return [Figure("tau", label, value, floor, None, floor + 0.05, floor + 0.2, note=note)]


def _coverage(tables: Compared, schema: TableSchema) -> list[Figure]:
    names = "alpha_precision", "beta_recall"
    labels = (
        "Synthetic rows that lie where real rows do (alpha-precision, 1 is best)",
        "Real rows that lie where synthetic rows do (beta-recall, 1 is best)",
    )
    found = coverage(tables.real, tables.drawn, schema)
    floors = coverage(tables.real, tables.other, schema)
    note = "amber from 0.1 below the floor, red from 0.3"
    return [
        Figure(name, label, value, floor, None, floor - 0.1, floor - 0.3, "lower", note)
        for name, label, value, floor in zip(names, labels, found, floors, strict=True)
    ]


def _rules(rows: ReportRows) -> list[Figure]:
    """Returns the figure of the rule whose share in synthetic rows is farthest below its share in
    real rows, apart from the sampling error."""
    label = "Synthetic rows that satisfy the table's rules"
    if not rows.rules_kept:
        return [Figure("rules", label, None, note="the table has no rules")]
    worst_rule = max(rows.rules_kept, key=_shortfall)
    floor = worst_rule.real - _noise(worst_rule)
    n_rules = len(rows.rules_kept)
    note = worst_rule.formula + (f"; worst of {n_rules} rules" if n_rules > 1 else "")
    is_rare = worst_rule.n_broken < _RARE * worst_rule.n_table  # even if the rule applies to few
    thresholds = floor - 0.01, None if is_rare else floor - 0.1
    figure = Figure("rules", label, worst_rule.drawn, worst_rule.real, None, *thresholds)
    return [replace(figure, worse="lower", note=note, unit="share")]


def _shortfall(rule: KeptRule) -> float:
    return rule.real - _noise(rule) - rule.drawn


def _noise(rule: KeptRule) -> float:
    """Returns the sampling error of the share of synthetic rows that satisfy a rule: half the width
    of its 95 % confidence interval."""
    return 1.96 * math.sqrt(rule.real * (1 - rule.real) / rule.n_drawn)


def _rule_lines(rows: ReportRows) -> list[dict[str, Any]]:
    kept = sorted(rows.rules_kept, key=_shortfall, reverse=True)
    return [
        {
            "rule": rule.formula,
            "value": rule.drawn,
            "floor": rule.real,
            "broken": rule.n_broken,
            "rows": rule.n_drawn,
            "of": rule.n_table,
        }
        for rule in kept
    ]


def _sentences(
    verdict: Verdict, figures: Sequence[Figure], more: Mapping[str, list[dict[str, Any]]]
) -> tuple[str, str]:
    """Returns (findings, advice) of the fidelity part, as sentences for readers. Only figures with
    the part's verdict are mentioned as findings. `more` are the tables of the part."""
    if verdict == "green":
        return (
            "The synthetic rows look like real rows: they differ from them no more, or only a"
            " little more, than other real rows do.",
            "No action needed.",
        )
    if verdict == "not_measured":
        named = "; ".join(figure.label for figure in _undecided(figures))
        return (
            "Too few rows to judge: no difference was found, but a difference that matters would"
            f" not be detected in so few rows ({named}).",
            MORE_UNSEEN,
        )
    deciding = {figure.name: figure for figure in figures if figure.verdict == verdict}
    found = [said for names, said in _SENTENCES if deciding.keys() & set(names)]
    advice = []
    if deciding.keys() - {"rules"}:
        named = ", ".join(f"“{each['column']}”" for each in more["columns"][:_N_SHOWN])
        advice.append(f"Review the columns that differ most: {named}.")
    if any(figure.name == "rules" and figure.verdict in ("amber", "red") for figure in figures):
        rule = more["rules"][0]
        advice.append(
            f"The rule “{rule['rule']}” is broken by {rule['broken']:,} of {rule['of']:,} synthetic"
            f" rows: {percent(1 - rule['value'], 1)} of the rows that it applies to, compared with"
            f" {percent(1 - rule['floor'], 1)} of real rows. If it must hold in every row, make it"
            " hard in the schema (member rules, keep: hard) and train again."
        )
    if verdict == "red" and deciding.keys() - {"rules"}:
        advice.append("Check that each has the right kind in the schema.")
    if not deciding.keys() - {"rules"}:
        return "The synthetic rows look like real rows, but some break a rule.", " ".join(advice)
    start = (
        "The synthetic rows are not similar to real rows"
        if verdict == "red"
        else "The synthetic rows differ somewhat from real rows"
    )
    return f"{start}: {'; '.join(found)}.", " ".join(advice)


_SENTENCES = (
    (("columns",), "the distributions of single columns differ"),
    (("pairs", "trends", "tau", "dependencies"), "dependencies between columns differ"),
    (("c2st",), "a classifier can tell them apart"),
    (("alpha_precision",), "some synthetic rows lie where there are no real rows"),
    (("beta_recall",), "some kinds of real rows are hardly generated"),
    (("rules",), "fewer synthetic rows than real rows satisfy a rule of the table"),
)
"""(names of figures, sentence that is shown if one of them determines an amber or red verdict)."""
