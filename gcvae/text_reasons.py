"""Why a column was not taken as what it looks like: what its user should know of its cells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.cells import Cells
from gcvae.dates import FIRST_DAY, LAST_DAY, candidate_formats, has_shape, infer_format, read_dates
from gcvae.notation import LARGEST_WHOLE, LONG_WHOLE, numbers_of

NEARLY = 0.95  # share of cells that are numbers or dates from which on the others deserve a warning

Mask = npt.NDArray[np.bool_]


def why_text(cells: Cells, numbers: Mask) -> Iterator[str]:
    """Why a column of text is no column of numbers or dates, where it nearly is one.

    Args:
        cells: Those that are not missing; at least one.
        numbers: Which of the texts are numbers. Shape: (U,).
    """
    reasons = (
        _words_among_numbers(cells, numbers),
        _signs_of_numbers(cells, numbers),
        _long_numbers(cells, numbers),
        _no_dates_among_dates(cells),
        _offsets_of_times(cells),
    )
    return (reason for reason in reasons if reason is not None)


def merged_numbers(cells: Cells) -> int:
    """How many numbers a float64 does not tell from others of the column, all of it numbers."""
    _, place, counts = np.unique(
        numbers_of(cells.stripped), return_inverse=True, return_counts=True
    )
    alike = cells.stripped.filter(pa.array(counts[place] > 1))
    return len({Decimal(text) for text in alike.to_pylist()}) - int((counts > 1).sum())


def why_respelled(cells: Cells) -> str:
    """Why numbers do not come back as they are spelled."""
    merged = merged_numbers(cells)
    if not merged:
        return "spells its numbers in several ways; values stay, spellings do not"
    return (
        "has numbers that differ only beyond the 15 to 17 digits that a number keeps, and become"
        f" {merged} fewer; declare it categorical to keep all as text"
    )


def _share(cells: Cells, chosen: Mask) -> float:
    """Of the column's cells."""
    return float(cells.counts[chosen].sum() / cells.counts.sum())


def _first(cells: Cells, chosen: Mask) -> str:
    """The first cell that is chosen, with its place."""
    problem = cells.problem(chosen, "{}")
    place = f"line {problem.line}" if problem.line is not None else "a cell"
    return f"{place} holds {problem.message}"


def _words_among_numbers(cells: Cells, numbers: Mask) -> str | None:
    share = _share(cells, numbers)
    if share < NEARLY or numbers.all():
        return None
    return (
        f"is taken as text although {_percent(share)} of its cells are numbers:"
        f" {_first(cells, ~numbers)}; name it in missing.markers if it means missing"
    )


_NUMBER_WITH_SIGNS = (
    "^[+-]?[$€£¥]? ?[0-9]{1,3}([., '][0-9]{3})+([.,][0-9]+)? ?[%$€£¥]?$"  # 1.017,22 and 1,017.22
    "|^[+-]?[$€£¥] ?[0-9]+([.,][0-9]+)?$|^[+-]?[0-9]+([.,][0-9]+)? ?[%$€£¥]$"  # $22.78 and 51.3%
    "|^[+-]?[0-9]+,[0-9]+$"
)


def _signs_of_numbers(cells: Cells, numbers: Mask) -> str | None:
    signed = ~numbers & _matches(cells.stripped, _NUMBER_WITH_SIGNS)
    if not signed.any() or _share(cells, signed | numbers) < NEARLY:
        return None
    first = cells.texts[int(np.argmax(signed))].as_py()
    return (
        f"is taken as text: its cells look like numbers, but are written as {first!r}; write them"
        " with digits and a decimal point alone to have them modelled as numbers"
    )


def _long_numbers(cells: Cells, numbers: Mask) -> str | None:
    long = ~numbers & _matches(cells.stripped, LONG_WHOLE)
    if not long.any() or _share(cells, long | numbers) < NEARLY:
        return None
    return (
        f"is taken as text: {_first(cells, long)}, a whole number beyond {int(LARGEST_WHOLE)};"
        " divide the numbers, or take their common part away, to have them modelled as numbers"
    )


def _percent(share: float) -> str:
    """In per cent, 100 only where it is all of them."""
    return f"{share if share == 1.0 else min(share, 0.999):.1%}"


def _no_dates_among_dates(cells: Cells) -> str | None:
    """Dates beyond what int64 counts in nanoseconds, or cells that are no dates, among dates."""
    readable, date_format = _nearest_format(cells)
    if date_format is None:
        return None
    far = ~readable
    unread = cells.texts.filter(pa.array(far)).to_pylist()
    far[far] = [_is_date(text, date_format) for text in unread]
    share = _share(cells, readable)
    if far.any() and _share(cells, readable | far) >= NEARLY:
        odd = f"its cells are dates of the format {date_format}, but {_first(cells, far)}"
        reason = f"is taken as text: {odd}, and dates are counted from {FIRST_DAY} to {LAST_DAY}"
    elif share >= NEARLY:
        odd = f"{_percent(share)} of its cells are dates of the format {date_format}"
        reason = f"is taken as text although {odd}: {_first(cells, ~readable)}"
    else:
        return None
    return f"{reason}; name it in missing.markers if it means that there is none"


def _nearest_format(cells: Cells) -> tuple[Mask, str | None]:
    """Which texts are dates, and of what format: the one of the most frequent cell's that reads
    most of them; None where that cell has the shape of no date."""
    formats = list(candidate_formats(cells.texts[int(cells.counts.argmax())].as_py()))
    if not formats:
        return np.zeros(len(cells.texts), dtype=bool), None
    read = [~np.isnat(read_dates(cells.texts, date_format)) for date_format in formats]
    best = int(np.argmax([mask.sum() for mask in read]))
    return read[best], formats[best]


def _is_date(text: str, date_format: str) -> bool:
    """Whether a text is a date of the format, however far."""
    if not has_shape(text, date_format):
        return False
    try:
        datetime.strptime(text, date_format.replace("%-", "%"))
    except ValueError:
        return False
    return True


_OFFSET = "[+-][0-9]{2}:?[0-9]{2}$"
_OFFSET_OR_UTC = "([+-][0-9]{2}:?[0-9]{2}|Z)$"


def _offsets_of_times(cells: Cells) -> str | None:
    with_offset = _matches(cells.texts, _OFFSET)
    if not with_offset.any() or not _matches(cells.texts, _OFFSET_OR_UTC).all():
        return None
    if infer_format(pc.replace_substring_regex(cells.texts, _OFFSET, "Z")) is None:
        return None
    first = cells.texts[int(with_offset.argmax())].as_py()
    return (
        f"is taken as text: its cells are times with an offset, such as {first!r};"
        " write them in UTC, with Z or +00:00, to have them modelled as times"
    )


def _matches(texts: pa.Array, pattern: str) -> Mask:
    found = pc.match_substring_regex(texts, pattern)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)
