"""Columns that name rows: keys, addresses and other texts of which each row has its own."""

from __future__ import annotations

import re
from typing import Any

import numpy.typing as npt
import pyarrow.compute as pc

from gcvae.cells.distinct_cells import Cells

IDENTIFIER_SHARE = 0.9  # distinct values per row from which on text is an identifier
IDENTIFIER_ROWS = 50  # fewer rows say nothing about uniqueness, but for texts of a telling form
FEWEST_NAMES = 3
FEWEST_DIGITS = 4  # of a form such as INV-2024-00017, which names rows also where there are few
KEY_SPREAD = 4  # whole numbers that never repeat in a range this many times their number are keys
YEARS = (1500, 2200)  # whole numbers in this range may be years, and are no keys
_KEY_NAME = re.compile(
    r"(^|[_\W])(id|uuid|guid|key|idx|index|serial|row|rowid|row_?number)$", re.IGNORECASE
)
_ADDRESS = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
_CAMEL_KEY = re.compile(r"[a-z](Id|ID)$")


def are_keys(cells: Cells, values: npt.NDArray[Any]) -> bool:
    """True for whole numbers that name rows: nearly all distinct, and dense or named like a key.

    Money and shares name nothing.
    """
    if cells.number_format is not None and (
        cells.number_format.prefix or cells.number_format.suffix
    ):
        return False
    n_rows = int(cells.counts.sum())
    if n_rows < IDENTIFIER_ROWS or len(cells.texts) < IDENTIFIER_SHARE * n_rows:
        return False
    if _KEY_NAME.search(cells.name) or _CAMEL_KEY.search(cells.name):
        return True
    low, high = (float(limit) for limit in (values.min(), values.max()))
    if YEARS[0] <= low and high <= YEARS[1]:
        return False
    return len(cells.texts) == n_rows and bool(high - low < KEY_SPREAD * n_rows)


def are_names(cells: Cells, n_rows: int) -> bool:
    """True for texts that name rows: nearly all distinct; in a few rows of a form that says so."""
    n_levels = len(cells.texts)
    if n_rows >= IDENTIFIER_ROWS:
        return n_levels >= IDENTIFIER_SHARE * n_rows
    if n_levels < max(n_rows, FEWEST_NAMES):
        return False
    if _KEY_NAME.search(cells.name) or _CAMEL_KEY.search(cells.name):
        return True
    if pc.all(pc.match_substring_regex(cells.stripped, _ADDRESS)).as_py():
        return True
    forms = pc.unique(pc.replace_substring_regex(cells.stripped, "[0-9]", "0"))
    n_digits = forms[0].as_py().count("0")
    # Digits alone, such as 00501, may be a code of something that other rows share.
    return len(forms) == 1 and FEWEST_DIGITS <= n_digits < len(forms[0].as_py())


def are_phrases(cells: Cells) -> bool:
    """True where most texts have three words and more."""
    found = pc.match_substring_regex(cells.stripped, r"\S+\s+\S+\s+\S")
    return bool(pc.mean(found).as_py() > 0.5)
