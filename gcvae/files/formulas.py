"""Escapes texts that a spreadsheet would evaluate as formulas (CSV injection)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gcvae.schema.columns import Column
from gcvae.schema.kinds import Outcomes

_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?[0-9][0-9., ]*([eE][+-]?[0-9]+)?%?$"


def has_texts(column: Column) -> bool:
    """Returns whether the column's values are strings, not numbers, dates or booleans."""
    if column.kind.outcomes in (Outcomes.LINE, Outcomes.TRUTH_VALUES):
        return False
    return column.datetime_format is None and not any(
        isinstance(level, int | float) for level in column.levels or ()
    )


def without_formulas(cells: Any) -> Any:
    """Returns string cells with an apostrophe put before each that a spreadsheet would evaluate as
    a formula.

    Formulas are strings that begin with =, +, -, @, a tab or a carriage return and are not plain
    numbers. Source: OWASP, CSV injection.

    Args:
        cells: Dictionary-encoded Arrow array of strings.
    """
    texts = cells.dictionary
    is_formula = pc.and_(
        pc.match_substring_regex(texts, _FORMULA),
        pc.invert(pc.match_substring_regex(texts, _NUMBER)),
    )
    written = pc.if_else(is_formula, pc.binary_join_element_wise("'", texts, ""), texts)
    return pa.DictionaryArray.from_arrays(cells.indices, written)
