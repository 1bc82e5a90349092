"""Detects recurring keys: identifiers of entities that several rows of a table refer to.

    order_no  customer_id  city    birth_date   total
    1         C-17         Berlin  1980-05-01   10.50
    2         C-17         Berlin  1980-05-01    3.90

A key is a text or a whole number, named like a key, that recurs and determines at least two other
columns; a whole number has to determine two that are not numbers, because a quantity may determine
others by formulas. A key of which most values are frequent, such as the number of one of 20 stores,
is a category instead, unless it determines personal data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from gcvae.arrays import Codes
from gcvae.cells.distinct_cells import Cells, cells_of
from gcvae.files.source_columns import SourceColumns
from gcvae.profiling.key_columns import is_called_a_key
from gcvae.profiling.personal_columns import find_personal
from gcvae.rules.search_functions import LEAST_ROWS_EACH
from gcvae.spelling.number_text import are_whole

_LEAST_KEYS = 20
_LEAST_DETERMINED = 2
_RARE_ROWS, _LEAST_RARE = 5, 0.05
"""Keys with fewer rows than this are rare; minimum share of rows with rare keys."""


def recurring_key(source: SourceColumns, settled: Collection[str]) -> tuple[str, list[str]] | None:
    """Returns (the recurring key of a table, the columns that it determines); None without one. Of
    several keys, the one that determines most columns is returned.

    Args:
        settled: Columns whose kind the user specified, which are not considered as keys.
    """
    names = [name for name in source.names if isinstance(name, str)]
    found: list[tuple[str, list[str]]] = []
    for name in names:
        if name in settled or not is_called_a_key(name):
            continue
        keys = cells_of(source[name], None, None)
        codes, counts = keys.codes, keys.counts
        if (codes < 0).any() or len(counts) < _LEAST_KEYS:
            continue
        if keys.all_numbers and not are_whole(keys.numerals).all():
            continue
        if len(codes) < LEAST_ROWS_EACH * len(counts):
            continue
        others = (cells_of(source[other], None, None) for other in names if other != name)
        determined = list(_determined(codes, others))
        if keys.all_numbers and sum(not each.all_numbers for each in determined) < 2:
            continue
        is_rare = counts[counts < _RARE_ROWS].sum() >= _LEAST_RARE * len(codes)
        if is_rare or any(map(_is_personal, determined)):
            found.append((name, [cells.name for cells in determined]))
    found.sort(key=lambda one: -len(one[1]))
    return found[0] if found and len(found[0][1]) >= _LEAST_DETERMINED else None


def _determined(keys: Codes, others: Iterator[Cells]) -> Iterator[Cells]:
    """Yields the columns with several values, but only one for each key."""
    first = np.zeros(int(keys.max()) + 1, dtype=np.int64)
    for cells in others:
        first[keys] = cells.codes
        if len(cells.texts) > 1 and (first[keys] == cells.codes).all():
            yield cells


def _is_personal(cells: Cells) -> bool:
    found = find_personal(cells, {"name": cells.name})
    return found is not None and found.kind.is_made_up
