"""Data-quality warnings on single columns: sentinel values, repeated keys, and levels that are
written in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from gcvae.arrays import Mask
from gcvae.cells.distinct_cells import Cells, shortened
from gcvae.files.header_lines import is_unnamed
from gcvae.schema.columns import Column, Draft
from gcvae.schema.kinds import Outcomes
from gcvae.spelling.date_text import is_time_of_day

FEW_VALUES = 20  # minimum number of other values for a lone negative number to count
FEWEST_OTHERS = 3  # minimum number of other distinct values, to tell what is far from them
MOST_SHOWN = 3
_NINES = [float("9" * n) for n in range(3, 13)]
_NEGATIVE_NINES = [-99.0, -99.9, -99.99, *(-nines for nines in _NINES)]
_LIMITS = [-32768.0, 32767.0, 65535.0, -2147483648.0, 2147483647.0]  # of integers
_MARKERS = [*_NINES, 999.9, 999.99, 9999.99, *_NEGATIVE_NINES, -999.9, -999.99, *_LIMITS]
_ROUND_DAY = re.compile(r"-(01-01|12-30|12-31)$")

Values = npt.NDArray[Any]


def column_notes(cells: Cells, column: Column, draft: Draft) -> Iterator[str]:
    """Yields data-quality warnings on a column, except on properties that the user has specified.

    Args:
        cells: Cells that are not missing.
        draft: Properties of the column that the user specified.
    """
    says = set(draft)
    if is_unnamed(column.name) and says <= {"name"}:
        yield ("has no name in the table and is named as in pandas; name it there, or drop it")
    if "markers" not in draft.get("missing", {}):
        yield from _like_markers(cells, column)
    if column.kind.outcomes is Outcomes.KEYS and "kind" not in says:
        yield from _copies_of_keys(cells)
    if column.kind.outcomes is Outcomes.NOMINAL_LEVELS and not says & {"kind", "levels"}:
        yield from _spellings_of_levels(cells)


# Numbers and dates that stand for "missing"


def _like_markers(cells: Cells, column: Column) -> Iterator[str]:
    values, may_be = _values_and_candidates(cells, column)
    if values is None:
        return
    candidates = (int(i) for i in np.flatnonzero(may_be))
    chosen = [i for i in candidates if _is_outlier(i, values, may_be, cells)]
    if not chosen:
        return
    chosen.sort(key=lambda i: -cells.counts[i])
    found = [
        f"{cells.texts[i].as_py()} in {cells.counts[i]} cells (the first in {_place(cells, i)})"
        for i in chosen[:MOST_SHOWN]
    ]
    markers = [*column.missing.markers, *(cells.texts[i].as_py() for i in chosen)]
    listed = ", ".join(f'"{marker}"' for marker in markers)
    yield (
        f"has {', '.join(found)}, far from all other values; if it means missing, set"
        f" missing.markers to [{listed}]"
    )


def _values_and_candidates(cells: Cells, column: Column) -> tuple[Values | None, Mask]:
    """Returns (values of the distinct texts, mask of those that look like sentinel values).

    The values are None if the column has too few, or none that could be sentinel values.
    """
    nothing = np.zeros(len(cells.texts), dtype=bool)
    if len(cells.texts) < 3:
        return None, nothing
    if column.kind.is_real and column.datetime_format is not None:
        if is_time_of_day(column.datetime_format):
            return None, nothing
        times = cells.times(column.datetime_format)
        values = times.astype("datetime64[s]").astype(np.float64)
        candidates = nothing.copy()
        for i in (int(times.argmin()), int(times.argmax())):
            day = str(times[i].astype("datetime64[D]"))
            candidates[i] = bool(_ROUND_DAY.search(day)) and cells.counts[i] > 1
        return values, candidates
    if not column.kind.is_modelled or not column.kind.may_be_numbers or cells.numbers is None:
        return None, nothing
    values = cells.numbers.astype(np.float64)
    may_be = cells.counts > 1
    may_be[may_be] = np.isin(values[may_be], _MARKERS)
    return values, may_be | ((cells.counts > 1) & _lone_negative(values, cells))


def _lone_negative(values: Values, cells: Cells) -> Mask:
    """Returns a mask of the only negative value, if it is a frequent whole number among many
    values."""
    found = np.zeros(len(values), dtype=bool)
    negative = values < 0
    negative[negative] = ~np.isin(values[negative], _MARKERS)
    rest = values >= 0
    if negative.sum() == 1 and rest.sum() >= FEW_VALUES:
        place = int(np.argmax(negative))
        nearest = int(np.flatnonzero(rest)[values[rest].argmin()])
        is_frequent = bool(cells.counts[place] >= 3 * cells.counts[nearest])
        found[place] = is_frequent and values[place] == np.floor(values[place])
    return found


def _is_outlier(i: int, values: Values, may_be: Mask, cells: Cells) -> bool:
    """Returns whether a value lies far outside of all values that are not candidates."""
    others = values[~may_be]
    if len(others) < FEWEST_OTHERS:
        return False
    low, high = float(others.min()), float(others.max())
    gap = max(low - float(values[i]), float(values[i]) - high)  # silently infinite
    most_frequent = cells.counts[~may_be].max()
    is_far = gap >= high - low > 0
    is_frequent = gap >= (high - low) / 4 and cells.counts[i] >= 3 * most_frequent
    is_lone_negative = values[i] < 0 <= low and len(others) >= FEW_VALUES
    return bool(gap > 0 and (is_far or is_frequent or is_lone_negative))


# Repeated keys


def _copies_of_keys(cells: Cells) -> Iterator[str]:
    """Yields a warning on keys that repeat. Texts of several words are ignored, because they may
    repeat."""
    is_copied = cells.counts > 1
    if not is_copied.any() or pc.any(pc.match_substring_regex(cells.stripped, r"\s")).as_py():
        return
    code = int(np.argmax(is_copied))  # the first in the table
    rows = np.flatnonzero(cells.codes == code)[:2]
    n = int(is_copied.sum())
    which = "one of its values occurs" if n == 1 else f"{n} of its values occur"
    yield (
        f"looks like a key, but {which} more than once, {'' if n == 1 else 'first '}"
        f"{shortened(cells.texts[code].as_py())} in {cells.place(int(rows[0]))} and"
        f" {cells.place(int(rows[1]))}; synthetic rows have each value once"
    )


# Levels that are spelled in two ways


def _spellings_of_levels(cells: Cells) -> Iterator[str]:
    plain = pc.utf8_lower(pc.replace_substring_regex(cells.stripped, r"\s+", " "))
    codes = plain.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    sizes = np.bincount(codes)
    alike = np.flatnonzero(sizes > 1)
    if not len(alike):
        return
    members = np.flatnonzero(codes == alike[0])
    members = members[np.argsort(-cells.counts[members], kind="stable")]
    usual, rare = int(members[0]), int(members[1])
    more = "" if len(alike) == 1 else f"; so do those of {len(alike) - 1} more"
    yield (
        "has categories that differ only by spaces or capitals and count as different:"
        f" {_shown(cells, usual)} ({_cells(cells, usual)}) and {_shown(cells, rare)}"
        f" ({_cells(cells, rare)}, the first in {_place(cells, rare)}){more}"
    )


def _shown(cells: Cells, i: int) -> str:
    return shortened(cells.texts[i].as_py())


def _cells(cells: Cells, i: int) -> str:
    n = int(cells.counts[i])
    return f"{n} cell" if n == 1 else f"{n} cells"


def _place(cells: Cells, i: int) -> str:
    """Returns the location of the first cell with the text of index `i`."""
    return cells.place(int(np.argmax(cells.codes == i)))
