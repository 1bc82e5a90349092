"""Detects columns that identify rows: keys, addresses and other unique texts."""

from __future__ import annotations

import pyarrow.compute as pc

from gcvae.cells.distinct_cells import Cells
from gcvae.files.header_lines import is_unnamed
from gcvae.profiling.key_numbers import (
    FEWEST_DIGITS,
    FEWEST_NAMES,
    IDENTIFIER_ROWS,
    IDENTIFIER_SHARE,
    KEY_NAME,
)
from gcvae.spelling.number_text import are_whole

_ADDRESS = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"


def are_names(cells: Cells, n_rows: int) -> bool:
    """Returns whether the cells of a column identify rows, as keys and e-mail addresses do.

    Of 50 or more cells, 90 % must be distinct; of fewer, all must be, and the column's name or the
    format of the cells must suggest it.

    Args:
        cells: Cells that are not missing.
        n_rows: Number of these cells.
    """
    n_levels = len(cells.texts)
    if n_rows >= IDENTIFIER_ROWS:
        return n_levels >= IDENTIFIER_SHARE * n_rows
    if n_levels < max(n_rows, FEWEST_NAMES):
        return False
    if KEY_NAME.search(cells.name):
        return True
    if pc.all(pc.match_substring_regex(cells.stripped, _ADDRESS)).as_py():
        return True
    forms = pc.unique(pc.replace_substring_regex(cells.stripped, "[0-9]", "0"))
    n_digits = forms[0].as_py().count("0")
    # Digits only, such as 00501, may be a code that rows share.
    return len(forms) == 1 and FEWEST_DIGITS <= n_digits < len(forms[0].as_py())


def are_phrases(cells: Cells) -> bool:
    """Returns whether most distinct cells contain at least three words."""
    found = pc.match_substring_regex(cells.stripped, r"\S+\s+\S+\s+\S")
    return bool(pc.mean(found).as_py() > 0.5)


def are_numbering(cells: Cells) -> bool:
    """Returns whether a column has no name and contains distinct whole numbers, such as the index
    of a data frame that was written to the file."""
    if not is_unnamed(cells.name) or (cells.counts > 1).any():
        return False
    return bool(are_whole(cells.stripped).all())
