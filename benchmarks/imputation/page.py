"""The page of the benchmark's results."""

from __future__ import annotations

from typing import Any

from benchmarks.pages_of_results import table_of

_INTRODUCTION = """# Imputation

`python -m benchmarks.imputation` trains the preset `{preset}` on `adult_train.csv`, blanks
{share:.0%} of the cells of {rows:,} rows of `adult_test.csv` at random, and has them filled.
{cells:,} cells are judged: those that were not missing before.

- **gcvae**: {draws} draws from p(missing | known) of each row; of a level the most frequent draw,
  of a number the mean (the median for the absolute error). That is a point estimate: single draws
  are meant to be as varied as the truth, and are worse guesses.
- **IterativeImputer**: scikit-learn's, Bayesian ridge, numbers given the other numbers and
  one-hot levels; levels by the most frequent one. Fitted to the same training rows.
- **mean or median, most frequent**: SimpleImputer.

`accuracy` is the share of levels that are right. `error` is the root mean squared error of
numbers, `absolute error` the mean absolute one, both over the standard deviation of the column in
training. Filling took {seconds:,.0f} s on one core that others used too.
"""


def render_page(document: dict[str, Any]) -> str:
    """The page, in Markdown."""
    introduction = _INTRODUCTION.format(
        preset=document["preset"],
        share=document["share_blanked"],
        rows=document["rows"],
        cells=document["cells_judged"],
        draws=document["draws"],
        seconds=document["seconds"],
    )
    names = list(document["columns"])
    means = [[name, *(_figure(document["means"][name][m]) for m in _MEASURES)] for name in names]
    parts = [introduction, "## Mean over columns\n", _table(["imputer", *_TITLES], means)]
    for measure, title in zip(_MEASURES, _TITLES, strict=True):
        columns = [name for name, part in document["columns"][names[0]].items() if measure in part]
        lines = [
            [c, *(_figure(document["columns"][name][c][measure]) for name in names)]
            for c in columns
        ]
        parts += [
            f"\n## {title.capitalize()}, column by column\n",
            _table(["column", *names], lines),
        ]
    return "\n".join(parts)


_MEASURES = ("accuracy", "error", "absolute_error")
_TITLES = ("accuracy", "error", "absolute error")


def _figure(value: float) -> str:
    return f"{value:.3f}"


def _table(header: list[str], rows: list[list[str]]) -> str:
    return table_of(header, rows) + "\n"
