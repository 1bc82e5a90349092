"""Dates beyond the range of timestamps, such as 9999-12-31, which mean "never"."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import Mask
from gcvae.cells.distinct_cells import Cells
from gcvae.schema.columns import Draft
from gcvae.schema.kinds import ColumnKind
from gcvae.spelling.date_text import are_read, are_written_so, candidate_formats
from gcvae.spelling.never_dates import MOST_NEVER, are_never, is_far

_FEWEST_DATES = 2
_FAR_YEAR = "(0[0-9]{3}|1[0-6][0-9]{2}|2[3-9][0-9]{2}|[3-9][0-9]{3})"
_FAR_DATE = rf"^{_FAR_YEAR}([^0-9]|[0-9]{{4}}([^0-9]|$))|[^0-9]{_FAR_YEAR}([^0-9]|$)"


def cells_for_never(cells: Cells, draft: Draft, usual: Mask) -> Mask:
    """Returns the mask of distinct texts that are sentinel dates: declared ones, else inferred
    ones.

    Args:
        cells: Cells of a column.
        draft: The user's declaration.
        usual: Texts that mean "missing" in any column.
    """
    if "never" in draft:
        return cells.are_listed(draft["never"]) & ~usual
    never = np.zeros(len(cells.texts), dtype=bool)
    is_said = "markers" in draft.get("missing", {}) or "levels" in draft
    kind: ColumnKind | None = draft.get("kind")
    may_be_dates = kind is None or "datetime_format" in kind.members
    if may_be_dates and not is_said:
        never[~usual] = _dates_for_never(cells.select(~usual))
    return never


def _dates_for_never(cells: Cells) -> Mask:
    """Returns the mask of distinct texts that are far dates, if all others are valid dates.

    If there are more than a few, they are ordinary dates and the mask is empty.
    """
    nothing = np.zeros(len(cells.texts), dtype=bool)
    if cells.source != "text" or len(cells.texts) < _FEWEST_DATES + 1:
        return nothing
    few = cells.texts.slice(0, MOST_NEVER + 1).to_pylist()
    if not any(any(candidate_formats(text)) for text in few):  # at least one is not a far date
        return nothing
    matches = pc.match_substring_regex(cells.texts, _FAR_DATE)
    far = np.asarray(matches.to_numpy(zero_copy_only=False), dtype=bool)
    if not 0 < far.sum() <= MOST_NEVER or len(far) - far.sum() < _FEWEST_DATES:
        return nothing
    others = cells.select(~far)
    found = others.inferred_date_format
    if found is None or are_never(others.times(found[0])).any():
        return nothing
    texts = cells.texts.filter(pa.array(far)).to_pylist()
    return far if all(is_far(text, found[0]) for text in texts) else nothing


def nearest_format(cells: Cells, *, as_written: bool = False) -> tuple[Mask, str | None]:
    """Returns (which texts are dates, their format): the format of the most frequent cell.

    Among several, the format that reads most texts. None if that cell does not look like a date.

    Args:
        cells: At least one.
        as_written: Whether a text counts only if the format writes it identically, with leading
            zeros.
    """
    formats = list(candidate_formats(cells.texts[int(cells.counts.argmax())].as_py()))
    if not formats:
        return np.zeros(len(cells.texts), dtype=bool), None
    find = are_written_so if as_written else are_read
    read = [find(cells.texts, date_format) for date_format in formats]
    best = int(np.argmax([mask.sum() for mask in read]))
    return read[best], formats[best]
