"""Renders a report's JSON document as HTML with the template `page.html.jinja`.

All texts are escaped. Private functions in this module are template filters that format numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gcvae.evaluation.report.histograms import LEAST_SHOWN
from gcvae.evaluation.report.parts import MOST_VISIBLE, PARTS

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_LINES = 30
"""Maximum number of rows that a table of the page shows; the JSON document contains all."""
_LONGEST_LABEL = 19
_MARKS = {"green": "✓", "amber": "!", "red": "✕", "not_measured": "–", "shown": "·"}
_NO_BREAK = "\u00a0"


def html_page(report: Mapping[str, Any], subject: str = "") -> str:
    """Returns a report (JSON, from `TableReport.to_json`) as one HTML page without scripts or
    external files; `subject` is a line under the title, such as file names and a date."""
    return rendered("page.html.jinja", report=report, subject=subject)


def database_page(report: Mapping[str, Any], pages: Mapping[str, str]) -> str:
    """Returns the HTML page of a database's report (JSON) that links to the HTML files of its
    tables, given by table in `pages`."""
    return rendered("database.html.jinja", report=report, pages=pages, parts=PARTS)


def rendered(template: str, **variables: Any) -> str:
    """Returns a template of the report, named by its file, filled with variables."""
    return _templates().get_template(template).render(**variables)


def _text_of(name: str) -> str:
    return files("gcvae.evaluation.report").joinpath(name).read_text("utf-8")


@lru_cache(maxsize=1)
def _templates() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_text_of),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "number": _number,
        "chance": _p_value,
        "share": _share,
        "percent": _percent,
        "value": _value,
        "interval": _interval,
        "short": _abbreviated,
    }
    environment.globals |= {
        "least_shown": LEAST_SHOWN,
        "most_visible": MOST_VISIBLE,
        "most_lines": _MOST_LINES,
        "made_with": _provenance,
        "marks": _MARKS,
    }
    return environment


def _provenance(report: Mapping[str, Any], sorts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns (name, value) pairs of row counts, settings and seed, to reproduce the report.
    `sorts` gives names for readers to the groups of rows."""
    rows = {sorts[name]: n for name, n in report["rows"].items()}
    tables = {f"rows of the {name} table": n for name, n in report["table_rows"].items()}
    settings = {name: n for name, n in report["settings"].items() if n is not None}
    known = {**rows, **tables, **settings, "seed": report["seed"]}
    return [(name.replace("_", " "), str(value)) for name, value in known.items()]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}".replace("-", "−")


def _p_value(p: float | None) -> str:
    return "–" if p is None else "below 0.001" if p < 0.001 else f"{p:.3f}"


def _share(value: float | None) -> str:
    """Returns a share as a percentage with one decimal, or two if it is below 0.1 %.

    >>> [_share(x) for x in (0.1234, -0.0004, None)]
    ['12.3\\xa0%', '−0.04\\xa0%', '–']
    """
    if value is None:
        return "–"
    decimals = 2 if 0 < abs(value) < 0.001 else 1
    return f"{100 * value:.{decimals}f}{_NO_BREAK}%".replace("-", "−")


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.0995 or share == 0 else f"{100 * share:.1f}"


def _value(value: float | None, unit: str) -> str:
    return _share(value) if unit == "share" else _number(value)


def _interval(ends: Sequence[float | None] | None, unit: str) -> str:
    return "" if not ends else f"{_value(ends[0], unit)} to {_value(ends[1], unit)}"


def _abbreviated(text: str) -> str:
    """Shortens a long label before its end, where labels with the same beginning often differ."""
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 5] + "…" + text[-4:]
