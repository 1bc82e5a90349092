"""Texts that a spreadsheet would take for formulas, written so that it takes them for texts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gcvae.schema.columns import Column
from gcvae.schema.kinds import Outcomes

_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?[0-9][0-9., ]*([eE][+-]?[0-9]+)?%?$"


def has_texts(column: Column) -> bool:
    """Whether cells of the column are texts: no numbers, dates or truth values."""
    if column.kind.outcomes in (Outcomes.LINE, Outcomes.TRUTH_VALUES):
        return False
    return column.datetime_format is None and not any(
        isinstance(level, int | float) for level in column.levels or ()
    )


def without_formulas(cells: Any) -> Any:
    """The cells of a column of texts: ' stands before each that a spreadsheet would compute.

    Those are what begins with =, +, -, @, a tab or a carriage return, and is no plain number.
    Source: OWASP, CSV injection.

    Args:
        cells: an Arrow dictionary of texts.
    """
    texts = cells.dictionary
    is_formula = pc.and_(
        pc.match_substring_regex(texts, _FORMULA),
        pc.invert(pc.match_substring_regex(texts, _NUMBER)),
    )
    written = pc.if_else(is_formula, pc.binary_join_element_wise("'", texts, ""), texts)
    return pa.DictionaryArray.from_arrays(cells.indices, written)
