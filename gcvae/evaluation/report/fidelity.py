"""Fidelity: how like the real table the drawn one is, beside real rows against real rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gcvae.evaluation.fidelity import shape_error, two_way_tv
from gcvae.evaluation.report.documents import Figure, Part, worst
from gcvae.evaluation.report.rows import ReportRows

MOST_ROWS = 5_000
"""Rows of each table that are compared."""


@dataclass(frozen=True)
class Compared:
    """Three tables of the same size: two of real rows, and drawn ones.

    `real` against `drawn` is the measure, `real` against `other` its floor.
    """

    real: pd.DataFrame
    other: pd.DataFrame
    drawn: pd.DataFrame


def compared_rows(rows: ReportRows, most: int, seed: int) -> Compared:
    """Real rows in two tables, unseen ones in the first where there are any, and drawn ones."""
    random = np.random.default_rng(seed)
    if rows.unseen is not None:
        real, other = rows.unseen, rows.members
    else:
        order = random.permutation(len(rows.members))
        half = len(order) // 2
        real, other = rows.members.iloc[order[:half]], rows.members.iloc[order[half:]]
    n = min(len(real), len(other), len(rows.drawn), most)
    tables = [t.iloc[random.permutation(len(t))[:n]] for t in (real, other, rows.drawn)]
    return Compared(*(t.reset_index(drop=True) for t in tables))


def fidelity_part(rows: ReportRows, seed: int) -> Part:
    """Judges how like the real rows the drawn ones are."""
    tables = compared_rows(rows, MOST_ROWS, seed)
    figures = []
    for name, label, measure, excess in (
        ("columns", "Difference of single columns", shape_error, (0.02, 0.1)),
        ("pairs", "Difference of pairs of columns", two_way_tv, (0.03, 0.1)),
    ):
        value = measure(tables.real, tables.drawn, rows.schema).value
        floor = measure(tables.real, tables.other, rows.schema).value
        amber, red = (floor + more for more in excess)
        figures.append(Figure(name, label, value, floor, None, amber, red))
    verdict = worst(figure.verdict for figure in figures)
    return Part(verdict, f"The drawn rows are {verdict}.", figures=tuple(figures))
