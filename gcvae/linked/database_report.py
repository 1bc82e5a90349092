"""Quality report of a synthetic database: a report on each table and statistics of foreign keys.

    view of T:  columns of T | columns of its parent | for each child table: number of children,
                means of numeric columns, numbers of distinct values of other columns

For each table, a view is evaluated as a single table (`gcvae.evaluation.report`), so that the
comparison covers relations between tables. The view of a child table contains only one child of
each parent, chosen at random, because a classifier would recognise siblings by the repeated cells
of their parent. The statistics of a foreign key are the share of valid references and the
distribution of the number of children.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from gcvae.arrays import Codes
from gcvae.artifact.file import write_artifact
from gcvae.evaluation.report.documents import TableReport
from gcvae.evaluation.report.page import database_page
from gcvae.evaluation.report.privacy import LEAST_ROWS
from gcvae.linked.database_schema import DatabaseSchema
from gcvae.linked.plan import TablePlan, key_columns
from gcvae.linked.references import NO_ROW, all_referenced_rows
from gcvae.linked.totals import is_number
from gcvae.training.reporting.model_report import make_report

_FEW_VALUES = 20
"""Numeric columns with at most this number of distinct values are treated as categorical."""
_FLOORS = 50
"""Number of draws from the real numbers of children for `KeyFigures.floor`."""
Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class KeyFigures:
    """Compares one foreign key between a synthetic and a real database.

    Attributes:
        table, columns, referred: Table and columns of the key, and the referenced table.
        found: Share of the synthetic references that lead to a row, among those that are not
            missing.
        unlike: Kolmogorov-Smirnov distance between the distributions of the number of children of a
            referenced row in the synthetic and the real database.
        floor: Mean distance between the real numbers of children and random samples of them: the
            distance to be expected by chance.
    """

    table: str
    columns: tuple[str, ...]
    referred: str
    found: float
    unlike: float
    floor: float


@dataclass(frozen=True, repr=False)
class DatabaseReport:
    """Quality report of a synthetic database: a report for each table, and for each foreign key the
    share of valid references and the distribution of the number of children.

    Attributes:
        tables: By table name, the report on the table's columns, those of the parent row, and
            summaries of the child rows.
        keys: Comparison of each foreign key between synthetic and real tables.
        left_out: For each table without a report, the reason.
    """

    tables: Mapping[str, TableReport]
    keys: tuple[KeyFigures, ...]
    left_out: Mapping[str, str]

    def __repr__(self) -> str:
        """Returns one line for each table with the verdicts of its report."""
        return "\n".join(f"{name}: {report!r}" for name, report in self.tables.items())

    def to_json(self) -> dict[str, Any]:
        """Returns the report as a JSON document."""
        return {
            "tables": {name: report.to_json() for name, report in self.tables.items()},
            "keys": [vars(key) | {"columns": list(key.columns)} for key in self.keys],
            "left_out": dict(self.left_out),
        }

    def save(self, folder: str | Path) -> None:
        """Writes `index.html` and an HTML page for each table into a folder, which is created if
        needed."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, content in self.pages().items():
            write_artifact(Path(folder) / name, content.encode())

    def pages(self) -> dict[str, str]:
        """Returns the HTML pages of the report: the content by file name."""
        names = {name: f"table-{i}.html" for i, name in enumerate(self.tables, 1)}
        pages = {names[name]: report.to_html(name) for name, report in self.tables.items()}
        return {"index.html": database_page(self.to_json(), names)} | pages


def database_report(
    links: DatabaseSchema,
    plans: Mapping[str, TablePlan],
    real: Tables,
    drawn: Tables,
    holdout: Tables | None,
    seed: int,
    progress: Callable[[str, float], None] | None,
) -> DatabaseReport:
    """Compares synthetic with real tables. Catalogues, which are copied unchanged, have no report.

    Args:
        plans: Plan of each table of the model.
        real, drawn, holdout: Real, synthetic and unseen real tables by name, with cells of the
            columns' dtypes; `holdout` may be None.
        progress: Receives the name of a table and the fraction of its report that is done.
    """
    sides = [real, drawn, *([] if holdout is None else [holdout])]
    rows = [all_referenced_rows(side, links) for side in sides]
    reports, left_out = {}, {}
    for name, plan in plans.items():
        if plan.is_catalogue:
            left_out[name] = "it is a catalogue, copied unchanged"
            continue
        views = [
            table_view(name, links, plans, side, at, seed)
            for side, at in zip(sides, rows, strict=True)
        ]
        n_columns, n_rows = views[0].shape[1], min(len(each) for each in views)
        if not n_columns or n_rows < LEAST_ROWS:
            left_out[name] = "it has only keys" if not n_columns else f"{n_rows} rows are too few"
            continue
        report_done = None if progress is None else partial(progress, name)
        reports[name] = make_report(
            None,
            views[0],
            views[2] if len(views) > 2 else None,
            synthetic=views[1],
            seed=seed,
            progress=report_done,
        )
    return DatabaseReport(reports, _compare_keys(links, real, drawn, rows, seed), left_out)


def table_view(
    name: str,
    links: DatabaseSchema,
    plans: Mapping[str, TablePlan],
    tables: Tables,
    rows: Mapping[str, dict[int, Codes]],
    seed: int,
) -> pd.DataFrame:
    """Returns the frame with which table `name` is evaluated: its columns, columns of the parent
    row, and summaries of child rows. A table with a parent is represented by one random child of
    each parent row.

    `rows` contains, for each table and foreign key, the row index that each row references. `seed`
    determines which child of each parent is chosen.
    """
    parts = [_without_keys(name, links, tables)]
    number = plans[name].parent
    if number is not None:
        above = links[name].foreign_keys[number].table
        of_parent = _without_keys(above, links, tables).add_prefix(f"{above} ")
        parts.append(of_parent.iloc[rows[name][number]].reset_index(drop=True))
    for child, plan in plans.items():
        if plan.parent is None or links[child].foreign_keys[plan.parent].table != name:
            continue
        of_child = _without_keys(child, links, tables)
        parts.append(_aggregates(child, of_child, rows[child][plan.parent], len(tables[name])))
    whole = pd.concat(parts, axis=1)
    if number is None:
        return whole
    order = np.random.default_rng(seed).permutation(len(whole))
    one_each = np.unique(rows[name][number][order], return_index=True)[1]
    return whole.iloc[np.sort(order[one_each])].reset_index(drop=True)


def _without_keys(name: str, links: DatabaseSchema, tables: Tables) -> pd.DataFrame:
    frame = tables[name].reset_index(drop=True)
    return frame.drop(columns=key_columns(name, links), errors="ignore")


def _aggregates(child: str, frame: pd.DataFrame, parents: Codes, n: int) -> pd.DataFrame:
    """Summarises a child table for each of n parents: number of children and, for each child
    column, the mean of numbers or else the number of distinct values. `parents` contains the parent
    index of each child."""
    found: dict[str, Any] = {f"{child} count": np.bincount(parents, minlength=n)}
    for column in map(str, frame.columns):
        cells = frame[column].reset_index(drop=True)
        of_parents = cells.groupby(parents)
        if is_number(cells.dtype) and cells.nunique() > _FEW_VALUES:
            found[f"{child} mean {column}"] = of_parents.mean().reindex(range(n))
        else:
            found[f"{child} different {column}"] = of_parents.nunique().reindex(range(n)).fillna(0)
    return pd.DataFrame(found)


def _compare_keys(
    links: DatabaseSchema,
    real: Tables,
    drawn: Tables,
    rows: list[dict[str, dict[int, Codes]]],
    seed: int,
) -> tuple[KeyFigures, ...]:
    """Compares all foreign keys of the real and synthetic tables; `rows` contains first the row
    indices that the real tables reference, then those of the synthetic tables."""
    found = []
    rng = np.random.default_rng(seed)
    for name, table in links.tables.items():
        for i, key in enumerate(table.foreign_keys):
            is_there = drawn[name][list(key.columns)].notna().all(axis=1).to_numpy()
            is_found = rows[1][name][i] != NO_ROW
            counts = [
                np.bincount(at[name][i][at[name][i] != NO_ROW], minlength=len(side[key.table]))
                for at, side in zip(rows, (real, drawn), strict=False)
            ]
            floors = [
                _ks_distance(counts[0], rng.choice(counts[0], max(len(counts[1]), 1)))
                for _ in range(_FLOORS if len(counts[0]) else 0)
            ]
            valid_share = float(is_found[is_there].mean()) if is_there.any() else 1.0
            distance = _ks_distance(*counts) if all(map(len, counts)) else 0.0
            floor = float(np.mean(floors)) if floors else 0.0
            found.append(KeyFigures(name, key.columns, key.table, valid_share, distance, floor))
    return tuple(found)


def _ks_distance(first: Codes, second: Codes) -> float:
    return float(ks_2samp(first, second, method="asymp").statistic)
