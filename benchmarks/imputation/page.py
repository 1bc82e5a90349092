"""The page of the benchmark's results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.pages_of_results import table_of

_INTRODUCTION = """# Imputation

After this page you know how accurately gcvae and other methods impute missing values.

`python -m benchmarks.imputation` ({made_at:.10}, seed {seed}) trains the preset `{preset}` on the
training rows of Adult, a public table. It removes {share:.0%} of the cells of the {rows:,} test
rows at random, and imputes them. {cells:,} imputed cells are then compared with the removed values.
[Conditions](conditions.md#imputation) describes how to impute.

For columns of categories, *accuracy* is the share of correct cells; higher is better. For columns
of numbers, *error* is the root mean squared error and *absolute error* the mean absolute error;
lower is better. Both are divided by the column's standard deviation. For numbers, two methods use
the mean for *error* and the median for *absolute error*, because these minimise the two measures.

- **gcvae** draws each missing cell {draws} times. It imputes the most frequent level, and the mean
  or median of numbers.
- **gcvae, one draw** imputes a single draw. A draw varies as real values do, so its error is
  larger.
- **IterativeImputer, most frequent** imputes numbers by Bayesian ridge regression (scikit-learn),
  and the most frequent level of other columns.
- **mean or median, most frequent** imputes the mean or median of a column, or its most frequent
  level.
"""


def render_page(document: dict[str, Any]) -> str:
    """The page, in Markdown."""
    introduction = _INTRODUCTION.format(
        preset=document["preset"],
        share=document["share_blanked"],
        rows=document["rows"],
        cells=document["cells_judged"],
        draws=document["draws"],
        seed=document["seed"],
        made_at=document["made_at"],
    )
    names = list(document["columns"])
    means = [[name, *(_figure(document["means"][name][m]) for m in _MEASURES)] for name in names]
    parts = [introduction, "## Mean over columns\n", _table(["method", *_TITLES], means)]
    for measures, title in ((_MEASURES[:1], "Accuracy"), (_MEASURES[1:], "Error, absolute error")):
        lines = [
            [column, *(_figures(document["columns"][name][column], measures) for name in names)]
            for column, part in document["columns"][names[0]].items()
            if measures[0] in part
        ]
        parts += [f"## {title} by column\n", _table(["column", *names], lines)]
    return "\n".join(parts)


_MEASURES = ("accuracy", "error", "absolute_error")
_TITLES = ("accuracy", "error", "absolute error")


def _figure(value: float) -> str:
    return f"{value:.3f}"


def _figures(part: dict[str, float], measures: Sequence[str]) -> str:
    return ", ".join(_figure(part[measure]) for measure in measures)


def _table(header: list[str], rows: list[list[str]]) -> str:
    return table_of(header, rows) + "\n"
