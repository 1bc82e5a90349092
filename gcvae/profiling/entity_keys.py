"""Detects recurring keys: identifiers of entities that several rows of a table refer to.

    order_no  customer_id  city    birth_date   total
    1         C-17         Berlin  1980-05-01   10.50
    2         C-17         Berlin  1980-05-01    3.90

A key is a column of strings or whole numbers that is named like a key, repeats its values, and
determines at least two other columns. Whole numbers have to determine two columns that are not
numeric, because a quantity may determine others by formulas. A column named like the number of a
person or of a case, such as an order, is a key even if it determines nothing. A column whose values
are nearly all frequent, such as the numbers of 20 stores, is a category instead, unless it
determines personal data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pandas as pd

from gcvae.arrays import Codes
from gcvae.cells.distinct_cells import Cells, cells_of
from gcvae.files.source_columns import SourceColumns
from gcvae.profiling.key_columns import (
    FEWEST_KEYS,
    IDENTIFIER_SHARE,
    are_dates,
    are_record_keys,
    is_called_a_key,
    key_texts,
    match_record_name,
)
from gcvae.profiling.personal_columns import find_personal
from gcvae.rules.search_functions import LEAST_ROWS_EACH
from gcvae.spelling.number_text import are_whole

_LEAST_DETERMINED = 2
_RARE_ROWS, _LEAST_RARE = 5, 0.05
"""A value of a key is rare if it has fewer rows than the first number; the second is the minimum
share of rows with rare values."""
_MOST_ROWS_EACH = 10
"""Maximum mean number of rows per key of a person or of a case, if few rows have rare keys."""


def recurring_keys(source: SourceColumns, settled: Collection[str]) -> dict[str, list[str]]:
    """Returns the recurring keys of a table: {key: names of the columns that it determines}.

    Of the keys that determine columns, only the one that determines most is returned. Other
    columns with numbers of persons or of cases, such as orders, are returned with an empty list.
    Columns in `settled`, whose kind the user specified, are not considered.
    """
    names = [name for name in source.names if isinstance(name, str)]
    numbers, found = dict[str, list[str]](), dict[str, list[str]]()
    for name in names:
        if name in settled or not (is_called_a_key(name) or match_record_name(name)):
            continue
        column = source[name]
        if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
            continue
        keys = cells_of(column, None, None)
        if not _may_be_keys(keys):
            continue
        counts, n_rows = keys.counts, int(keys.counts.sum())
        are_rare = bool(counts[counts < _RARE_ROWS].sum() >= _LEAST_RARE * n_rows)
        is_rare = are_rare or n_rows <= _MOST_ROWS_EACH * len(counts)
        recurs = len(counts) < IDENTIFIER_SHARE * n_rows
        if recurs and is_rare and are_record_keys(name, key_texts(keys)):
            numbers[name] = []
        if (keys.codes < 0).any() or n_rows < LEAST_ROWS_EACH * len(counts):
            continue
        others = (cells_of(source[other], None, None) for other in names if other != name)
        determined = list(_determined(keys.codes, others))
        n_texts = sum(not each.all_numbers for each in determined)
        if len(determined) < _LEAST_DETERMINED or (keys.all_numbers and n_texts < 2):
            continue
        if are_rare or name in numbers or any(map(_is_personal, determined)):
            found[name] = [cells.name for cells in determined]
    entity = max(found, key=lambda name: len(found[name]), default=None)
    return numbers if entity is None else numbers | {entity: found[entity]}


def _may_be_keys(cells: Cells) -> bool:
    """Returns whether a column has at least 20 distinct strings or whole numbers that are neither
    dates nor personal data. Numbers of one person or account, such as IBANs, are allowed; phone
    numbers are not, because several people may share them."""
    if len(cells.texts) < FEWEST_KEYS or cells.source not in ("text", "integer", "float"):
        return False
    values = cells.numbers if cells.all_numbers else None
    if values is not None:
        is_whole = are_whole(cells.numerals).all()
        if not is_whole or are_dates(values, int(values.min()), int(values.max())):
            return False
    elif cells.inferred_date_format is not None:
        return False
    found = find_personal(cells, {"name": cells.name})
    return found is None or found.kind.is_number


def _determined(keys: Codes, others: Iterator[Cells]) -> Iterator[Cells]:
    """Yields the columns that a key determines: rows with equal keys have equal cells. Columns of
    one value are omitted. `keys` contains the index of each row's key."""
    first = np.zeros(int(keys.max()) + 1, dtype=np.int64)
    for cells in others:
        first[keys] = cells.codes
        if len(cells.texts) > 1 and (first[keys] == cells.codes).all():
            yield cells


def _is_personal(cells: Cells) -> bool:
    found = find_personal(cells, {"name": cells.name})
    return found is not None and found.kind.is_made_up
