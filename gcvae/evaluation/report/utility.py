"""Utility part of a report: learners trained on synthetic rows, tested on unseen real rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Numbers
from gcvae.errors import UnknownColumnError
from gcvae.evaluation.columns import (
    evenly_spaced,
    is_number,
    measured_columns,
    numbers_of,
    with_outcome,
)
from gcvae.evaluation.features import fit_features
from gcvae.evaluation.report.parts import (
    MORE_UNSEEN,
    NO_UNSEEN,
    Figure,
    Part,
    not_measured,
    percent,
)
from gcvae.evaluation.report.row_space import fit_space
from gcvae.evaluation.report.rows import ReportRows
from gcvae.progress import Report, report_to_nobody
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.suggestions import unknown_names

MOST_ROWS = 2_000
"""Maximum number of rows to train on, and to test on."""
LEAST_ROWS = 100
MOST_TARGETS = 12
_MOST_CLASSES = 10
_LEAST_CLASS = 20
_LEAST_SKILL = 0.05
AMBER_SHARE, RED_SHARE = 0.9, 0.7


@dataclass(frozen=True)
class TargetScores:
    """Scores of one learner that predicts one column (`target`) of unseen real rows.

    Attributes:
        learner: `trees` (gradient boosting) or `linear` (ridge or logistic regression).
        measure: `auc` (two classes), `macro-auc` (several classes), or `r2` (numbers).
        drawn: Score after training on synthetic rows.
        real: Score after training on as many real rows.
    """

    target: str
    learner: str
    measure: str
    drawn: float
    real: float

    @property
    def kept(self) -> float | None:
        """Ratio of the skill after training on synthetic rows to that on real rows, 0 to 1.2.

        Skill is the score scaled to 0 for chance and 1 at best. The ratio is None if the skill
        after training on real rows is below 0.05.
        """
        chance = 0.0 if self.measure == "r2" else 0.5
        if (self.real - chance) / (1.0 - chance) < _LEAST_SKILL:
            return None
        return min(max((self.drawn - chance) / (self.real - chance), 0.0), 1.2)


def utility_part(
    rows: ReportRows,
    targets: Sequence[str] | None,
    seed: int,
    report: Report = report_to_nobody,
) -> Part:
    """Returns the utility part of a report.

    Args:
        targets: Names of the columns to predict; None for up to 12 columns, evenly spaced.
        report: Called with the fraction of the work that is done, 0 to 1.

    Raises:
        UnknownColumnError: A target is not a column that the model learns.
    """
    chosen = _targets(rows.schema, targets)
    if rows.unseen is None:
        return not_measured("it needs unseen rows, and there are none", NO_UNSEEN)
    n = min(len(rows.members), len(rows.drawn), MOST_ROWS)
    if min(n, len(rows.unseen)) < LEAST_ROWS:
        few = min(n, len(rows.unseen))
        what = "unseen rows" if few < n else "rows"
        return not_measured(f"{few} {what} are too few; {LEAST_ROWS} are needed", MORE_UNSEEN)
    tables = rows.drawn.head(n), rows.members.head(n), rows.unseen.head(MOST_ROWS)
    found: list[TargetScores] = []
    for i, column in enumerate(chosen):
        found += _scores_of(column, tables, rows.schema, seed)
        report((i + 1) / len(chosen))
    return _judged(found, n, len(tables[2]))


def _targets(schema: TableSchema, named: Sequence[str] | None) -> list[Column]:
    columns = measured_columns(schema)
    if named is None:
        return [columns[i] for i in evenly_spaced(len(columns), MOST_TARGETS)]
    by_name = {column.name: column for column in columns}
    unknown = [name for name in named if name not in by_name]
    if unknown:
        points = [(name, {"column": name}) for name in unknown]
        raise UnknownColumnError(*unknown_names("no column to predict", points, [*by_name]))
    return [by_name[name] for name in dict.fromkeys(named)]


Tables = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]
"""(synthetic rows, training rows, unseen rows)."""


def _scores_of(
    target: Column, tables: Tables, schema: TableSchema, seed: int
) -> list[TargetScores]:
    """Returns the scores of both learners for a target; empty if there are too few rows."""
    drawn, real, unseen = (with_outcome(table, target.name) for table in tables)
    others = TableSchema(tuple(c for c in measured_columns(schema) if c.name != target.name))
    if min(len(drawn), len(real), len(unseen)) < LEAST_ROWS or not len(others):
        return []
    if is_number(target):
        return _of_number(target, (drawn, real, unseen), others, seed)
    return _of_classes(target, (drawn, real, unseen), others, seed)


def _inputs(tables: Tables, others: TableSchema) -> tuple[dict[str, list[Numbers]], list[bool]]:
    """Encodes the three tables as inputs of the learners. Returns (encoded matrices of the tables
    by name of the learner, mask of the columns that are categorical for `trees`)."""
    features = fit_features(tables[1], tuple(others))
    space = fit_space(tables[1], others)
    inputs = {
        "trees": [features.matrix(table) for table in tables],
        "linear": [space.embed(table).astype(np.float64) for table in tables],
    }
    return inputs, features.are_levels


def _of_number(
    target: Column, tables: Tables, others: TableSchema, seed: int
) -> list[TargetScores]:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge

    y = [numbers_of(table, target) for table in tables]
    if min(float(np.std(part)) for part in y) == 0.0:
        return []
    inputs, are_levels = _inputs(tables, others)
    trees = HistGradientBoostingRegressor(
        categorical_features=are_levels, max_iter=50, random_state=seed
    )
    found = []
    for name, learner in (("trees", trees), ("linear", Ridge(1.0))):
        x = inputs[name]
        scores = [float(learner.fit(x[i], y[i]).score(x[2], y[2])) for i in (0, 1)]
        found.append(TargetScores(target.name, name, "r2", *(max(r2, -1.0) for r2 in scores)))
    return found


def _of_classes(
    target: Column, tables: Tables, others: TableSchema, seed: int
) -> list[TargetScores]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    labels = [table[target.name].astype(object) for table in tables]
    counts = labels[2].value_counts()
    classes = list(counts[counts >= _LEAST_CLASS].index[:_MOST_CLASSES])
    if len(classes) < 2:
        return []
    code_of = {level: i for i, level in enumerate(classes)}  # rarer levels share a class
    y = [np.array([code_of.get(level, len(classes)) for level in part]) for part in labels]
    inputs, are_levels = _inputs(tables, others)
    trees = HistGradientBoostingClassifier(
        categorical_features=are_levels, max_iter=30, early_stopping=False, random_state=seed
    )
    measure = "auc" if len(classes) == 2 else "macro-auc"
    found = []
    for name, learner in (("trees", trees), ("linear", LogisticRegression(C=1.0, max_iter=200))):
        x = inputs[name]
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            areas = [
                mean_area(learner, x[i], y[i], x[2], y[2], range(len(classes))) for i in (0, 1)
            ]
        found.append(TargetScores(target.name, name, measure, *areas))
    return found


def mean_area(
    learner: Any,
    x: Numbers,
    labels: npt.NDArray[Any],
    x_test: Numbers,
    truth: npt.NDArray[Any],
    classes: Sequence[Any],
) -> float:
    """Fits a scikit-learn classifier and returns its mean one-against-rest ROC AUC on test rows.

    A class without training rows counts with an AUC of 0.5. Shape: x (n, d), labels (n,), x_test
    (m, d), truth (m,), for d features.
    """
    from sklearn.metrics import roc_auc_score

    codes, known = pd.factorize(labels)
    if len(known) < 2:  # every training row has the same class
        return 0.5
    columns = learner.fit(x, codes).predict_proba(x_test).T
    chances = dict(zip(known, columns, strict=True))
    nothing = np.zeros(len(truth))
    return float(np.mean([roc_auc_score(truth == c, chances.get(c, nothing)) for c in classes]))


def _judged(found: list[TargetScores], n_rows: int, n_unseen: int) -> Part:
    kept = [score.kept for score in found if score.kept is not None]
    tables = {
        "targets": [asdict(score) | {"skill_kept": score.kept} for score in found],
        "settings": {"rows_learned_from": n_rows, "rows_judged_on": n_unseen},
    }
    if not kept:
        reason = "no column can be predicted from the others, even with real rows"
        return replace(not_measured(reason), tables=tables)
    mean = float(np.mean(kept))
    error = float(np.std(kept, ddof=1)) / math.sqrt(len(kept)) if len(kept) > 1 else None
    figure = Figure(
        "skill_kept",
        "Predictive skill of models trained on synthetic rows (trained on real rows: 100 %)",
        mean,
        floor=1.0,
        interval=None if error is None else (mean - 1.96 * error, mean + 1.96 * error),
        amber=AMBER_SHARE - 1e-12,
        red=RED_SHARE - 1e-12,
        worse="lower",
        note=f"mean over {len(kept)} pairs of a target column and a learner",
        unit="share",
    )
    sentence = (
        f"Models trained on synthetic rows to predict a column keep {percent(mean)} of the skill of"
        " models trained on as many real rows"
        + (" (more than 100 % is chance)." if mean > 1 else ".")
    )
    advice = {
        "green": "No action needed.",
        "amber": "Check the columns that you want to predict in the table “Predicted columns”.",
        "red": "Do not train predictive models on these rows. Check which columns fail, and"
        " train the model longer.",
    }[figure.verdict]
    return Part(figure.verdict, sentence, advice, (figure,), tables)
