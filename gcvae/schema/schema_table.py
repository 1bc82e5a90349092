"""Summary of a schema for notebooks: one line for each column, and the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gcvae.figures.html_tables import lines_table, paragraphs
from gcvae.schema.personal import read_personal

_HEADER = "column", "kind", "outcomes", "blanks"
_MOST_LEVELS = 6


def schema_table(columns: Iterable[Mapping[str, Any]], rules: Iterable[object]) -> str:
    """Returns HTML that summarises the columns and rules of a schema.

    Args:
        columns: Columns as JSON objects of the schema document.
        rules: Rules, whose str() is shown.
    """
    lines = ((column["name"], *_described(column)) for column in columns)
    return lines_table(_HEADER, lines) + paragraphs(f"Rule: {rule}" for rule in rules)


def _described(column: Mapping[str, Any]) -> tuple[str, str, str]:
    """Returns (kind, possible values, whether cells may be missing) of a column in words."""
    if column.get("drop"):
        return "dropped", "", ""
    blanks = "allowed" if column["missing"]["allowed"] else "none"
    return column["kind"], _outcomes(column), blanks


def _outcomes(column: Mapping[str, Any]) -> str:
    """Returns a description of a column's values: its first levels, its range, or its made-up data.

    >>> _outcomes({"levels": [1, 2, 3, 4, 5, 6, 7]}), _outcomes({"minimum": 0, "maximum": 9.5})
    ('1, 2, 3, 4, 5, 6 and 1 more', '0 to 9.5')
    >>> _outcomes({"minimum": "2019-01-01", "maximum": "2024-12-31", "never": ["9999-12-31"]})
    '2019-01-01 to 2024-12-31, or 9999-12-31'
    """
    kind = read_personal(column.get("personal", False))
    if kind and kind.is_made_up:
        return f"made-up {kind.plural}"
    if "levels" in column:
        shown = [str(level) for level in column["levels"][:_MOST_LEVELS]]
        n_more = len(column["levels"]) - len(shown)
        return ", ".join(shown) + (f" and {n_more:,} more" if n_more else "")
    ends = [str(column.get(end, "…")) for end in ("minimum", "maximum")]
    never = "".join(f", or {text}" for text in column.get("never", ()))
    return "" if ends == ["…", "…"] else " to ".join(ends) + never
