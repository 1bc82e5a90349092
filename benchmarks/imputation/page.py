"""The page of the benchmark's results."""

from __future__ import annotations

from typing import Any

from benchmarks.pages_of_results import table_of

_INTRODUCTION = """# Imputation

After this page you know how accurately gcvae and other methods impute missing values.

`python -m benchmarks.imputation` ({made_at:.10}, seed {seed}) trains the preset `{preset}` on the
training rows of Adult, a public table. It removes {share:.0%} of the cells of the {rows:,} test
rows at random, and imputes them. {cells:,} imputed cells are then compared with the removed values.
[Conditions](conditions.md#imputation) describes how to impute. The figures are means over columns.

For columns of categories, *accuracy* is the share of correct cells; higher is better. For columns
of numbers, *error* is the root mean squared error and *absolute error* the mean absolute error;
lower is better. Both are divided by the column's standard deviation. The first and the last
method of this list impute numbers twice: by the mean, which minimises *error*, and by the median,
which minimises *absolute error*.

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
    means = [
        [name, *(f"{figures[measure]:.3f}" for measure in _MEASURES)]
        for name, figures in document["means"].items()
    ]
    return "\n".join([introduction, table_of(["method", *_TITLES], means), ""])


_MEASURES = ("accuracy", "error", "absolute_error")
_TITLES = ("accuracy", "error", "absolute error")
