"""The page of the benchmark's results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.pages_of_results import table_of

_INTRODUCTION = """# Imputation

After this page you know how accurately gcvae and other methods impute missing values.

`python -m benchmarks.imputation` ({made_at:.10}, seed {seed}) trains the preset `{preset}` on the
training rows of Adult. In the {rows:,} test rows, it removes {share:.0%} of the cells at random,
and imputes them. The figures compare {cells:,} imputed cells with the removed values.
[Conditions](conditions.md#imputation) lists the options of imputation.

*Accuracy* is the share of correct levels. *Error* is the root mean squared error of numbers, and
*absolute error* their mean absolute error. Both are divided by the column's standard deviation.

- **gcvae** makes {draws} draws of each row. It takes the mode of levels and the mean of numbers, or
  the median for the absolute error. A single draw varies as real values do, so its error is larger.
- **IterativeImputer** of scikit-learn (Bayesian ridge) imputes numbers; levels get the mode.
- **Mean or median** imputes the mean of numbers (the median for the absolute error), and the mode
  of levels.
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
