"""Data-quality warnings on single columns: cells that were not read as numbers or dates, sentinel
values, repeated keys, and levels that are written in two ways."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import Mask, Numbers
from gcvae.cells.distinct_cells import Cells, shortened
from gcvae.files.header_lines import is_unnamed
from gcvae.numerics.isolated_values import without_isolated
from gcvae.profiling.key_columns import is_modelled_record_key, key_texts
from gcvae.schema.columns import Column, Draft
from gcvae.schema.kinds import Outcomes
from gcvae.spelling.date_text import are_read, candidate_formats, is_time_of_day
from gcvae.spelling.format_inference import NEARLY, InferredFormat
from gcvae.spelling.forms import NumberFormat
from gcvae.spelling.number_formats import read_number
from gcvae.spelling.number_text import LARGEST_WHOLE, LONG_WHOLE, are_numbers
from gcvae.spelling.written_numbers import mask_of

MOSTLY = 0.5  # minimum share of numbers or dates for a warning on the other cells
MOST_WORDS = 3  # maximum number of distinct words among numbers, for a warning on them
FEWEST_NUMBERS = 20  # minimum number of distinct numbers among words; fewer may be levels
_LOOKED_AT_TEXTS = 100  # number of distinct cells that are examined for dates of unknown format
FEWEST_VALUES = 20  # with more distinct numbers, a single negative one may be a sentinel
FEWEST_OTHERS = 3  # minimum number of distinct numbers that are not sentinels
_MANY_OTHERS = 10  # with at most this many others, only numbers such as 999 may be sentinels
_LEAST_SHARE = 1e-3  # minimum share of the rows that have a sentinel
_NINES = r"^-?9{2,}([.][09]*)?$"
MOST_SHOWN = 3  # maximum number of sentinels that a warning describes

ROW_COUNTER_WARNING = (
    "has no name and only numbers the rows, as written by DataFrame.to_csv() without index=False;"
    ' it is dropped; "drop": false in the schema keeps it'
)
IDENTIFIER_WARNING = (
    "is treated as an identifier: it is not modelled, and new values are generated; if it is not an"
    " identifier, set its kind in the schema"
)
UNDECIDED_WARNING = (
    "has whole numbers that are as distinct as keys and is treated as a quantity, so that synthetic"
    ' rows may contain numbers of the table; if they identify rows, set "kind": "identifier" in the'
    ' schema, otherwise "kind": "integer"'
)
REAL_KEYS_WARNING = (
    "is named like the number of a person or a case: synthetic rows contain real ones of the table;"
    ' for new ones, set its kind to "identifier"; if it identifies nobody, set "personal" to false'
)
PHRASES_WARNING = (
    "; phrases that many rows share may appear in the new values: drop it if it is private"
)


def reasons_for_text(cells: Cells, found: InferredFormat | None) -> Iterator[str]:
    """Yields reasons why a column is read as text, although most cells are numbers or dates.

    `cells` are the cells that are not missing, at least one; `found` is the number format that fits
    most of them, or None.
    """
    reasons = (
        _words_among_numbers(cells, found),
        _long_numbers(cells),
        _no_dates_among_dates(cells) or _like_dates(cells),
    )
    return (reason for reason in reasons if reason is not None)


def markers_warning(cells: Cells, missing: Mask) -> str:
    """Returns the warning that several different strings in a column mean "missing". `missing` is
    the mask of these strings among the U distinct cells. Shape: (U,)."""
    texts = cells.texts.filter(pa.array(missing)).to_pylist()
    most_frequent = cells.texts[int(np.where(missing, cells.counts, -1).argmax())].as_py()
    return (
        f"has {len(texts)} texts that mean missing, {', '.join(map(repr, texts[:5]))}; the model"
        f" does not distinguish them, and synthetic rows have the most frequent, {most_frequent!r}"
    )


def recurrence_warning(determined: Sequence[str]) -> str:
    """Returns the warning that values of a key column occur in several rows, given the names of the
    columns that the key determines, if any."""
    if determined:
        made = f"determines {', '.join(determined)}: rows with the same value are generated as one"
        made += " entity, with a new value"
    else:
        made = "is named like the number of a person or a case: it gets new values, each in as many"
        made += " rows as in the table"
    return f'recurs and {made}; for the values of the table, set its kind to "categorical"'


def words_warning(cells: Cells, words: Mask) -> str:
    """Returns the warning that words such as "unknown" among numbers or dates count as missing.
    `words` is the mask of these words among the U distinct cells. Shape: (U,)."""
    texts, counts = cells.texts.filter(pa.array(words)).to_pylist(), cells.counts[words].tolist()
    shown = [
        f"{text!r} ({n:,} {'cell' if n == 1 else 'cells'})"
        for text, n in zip(texts, counts, strict=True)
    ]
    return (
        f"has {' and '.join(shown)} among numbers or dates, which is treated as missing; set"
        " missing.markers in the schema to the texts that mean missing, or to [] for none"
    )


def separator_warning(cells: Cells, taken: NumberFormat, other: NumberFormat) -> str:
    """Returns the warning that numbers such as 1,234 are read in the format `taken` although the
    format `other` fits too. It names the schema property that selects `other`."""
    texts = cells.stripped
    sign = taken.thousands or taken.decimal
    text = texts[pc.index(pc.match_substring(texts, sign), True).as_py()].as_py()
    other = replace(other, prefix=taken.prefix, suffix=taken.suffix)
    values = [read_number(text, number_format) for number_format in (taken, other)]
    name, member = ("thousands", other.thousands) if other.thousands else ("decimal", other.decimal)
    said = json.dumps({name: member}, ensure_ascii=False)
    stands = "the thousands separator" if taken.thousands else "the decimal separator"
    return (
        f"can be read in two ways: its {_SIGN_NAMES.get(sign, 'sign')} is read as {stands}, so that"
        f" {text!r} is {values[0]}; number_format {said} in the schema makes it {values[1]}"
    )


_SIGN_NAMES = {",": "comma", ".": "point"}


def respelling_warning(cells: Cells) -> str:
    """Returns the warning that some cells are written in another format, or with more digits, than
    synthetic numbers of the column will be."""
    message = (
        "has numbers in several formats, or of more than 15 to 17 digits; values are kept, formats"
        " and further digits are not"
    )
    if cells.number_format is None:
        return message
    written = cells.as_numerals_are_written
    if written.equals(cells.texts):
        return message
    row = pc.index(pc.not_equal(written, cells.texts), True).as_py()
    return (
        f"{message}: {shortened(cells.texts[row].as_py())} comes back as {written[row].as_py()!r}"
    )


def _share(cells: Cells, chosen: Mask) -> float:
    return float(cells.counts[chosen].sum() / cells.counts.sum())


def _row_of_first(cells: Cells, chosen: Mask) -> int:
    return int(np.argmax(np.append(chosen, False)[cells.codes]))


def _first(cells: Cells, chosen: Mask) -> str:
    """Returns the location and content of the first cell in the mask `chosen` of distinct cells,
    such as "line 7 holds 'unknown'"."""
    row = _row_of_first(cells, chosen)
    return (
        f"{cells.row_location(row)} holds {shortened(cells.texts[int(cells.codes[row])].as_py())}"
    )


def _words_among_numbers(cells: Cells, found: InferredFormat | None) -> str | None:
    """Returns the warning that a column is text because of a few words among numbers; else None."""
    are_numbers = cells.are_numbers if found is None else found.fits
    if are_numbers.all() or (found is None and not _are_few_words(cells, ~are_numbers)):
        return None
    are_alike = "numbers"
    if found is not None and found.format != NumberFormat() and found.fits.any():
        first = cells.texts[int(np.argmax(found.fits))].as_py()
        are_alike = f"numbers written like {first!r}"
    reason = (
        f"is treated as text although {_percent(_share(cells, are_numbers))} of its cells are"
        f" {are_alike}: {_first(cells, ~are_numbers)}"
    )
    if found is not None and found.are_numbers[cells.codes[_row_of_first(cells, ~are_numbers)]]:
        return f"{reason}; use one format, prefix and suffix to have them modelled as numbers"
    return f"{reason}; add it to missing.markers if it means missing"


def _are_few_words(cells: Cells, words: Mask) -> bool:
    """Returns whether `words`, a mask of the distinct cells, has at most three words, each in
    several rows, among many numbers."""
    n_words, n_numbers = int(words.sum()), int((~words).sum())
    are_frequent = n_words <= MOST_WORDS and bool((cells.counts[words] > 1).all())
    return are_frequent and n_numbers >= FEWEST_NUMBERS and _share(cells, ~words) >= MOSTLY


def _long_numbers(cells: Cells) -> str | None:
    long = _matches(cells.stripped, LONG_WHOLE)
    if not long.any():
        return None
    numbers = are_numbers(cells.stripped)
    long &= ~numbers
    if not long.any() or _share(cells, long | numbers) < NEARLY:
        return None
    return (
        f"is treated as text: {_first(cells, long)}, a whole number beyond {int(LARGEST_WHOLE)};"
        " divide the numbers or subtract their common part to have them modelled as numbers"
    )


def _percent(share: float) -> str:
    """Returns a text such as "12.5%", and "100.0%" only for a share of exactly 1."""
    return f"{share if share == 1.0 else min(share, 0.999):.1%}"


def _no_dates_among_dates(cells: Cells) -> str | None:
    """Returns the warning that a column is text although most cells are dates of one format; else
    None."""
    readable, date_format = _nearest_format(cells)
    if date_format is None:
        return None
    share = _share(cells, readable)
    if readable.all():
        return (
            f"is treated as text although its cells are dates of the format {date_format}, because"
            f" some are written differently; set datetime_format {date_format!r} in the schema to"
            " read all as dates and write them in that format"
        )
    if share < MOSTLY:
        return None
    return (
        f"is treated as text although {_percent(share)} of its cells are dates of the format"
        f" {date_format}: {_first(cells, ~readable)}; use one format, or add it to missing.markers"
        " if it means missing"
    )


def _nearest_format(cells: Cells) -> tuple[Mask, str | None]:
    """Returns (mask of the distinct cells that are dates in the most suitable format, the format).

    Of the formats that fit the most frequent cell, the one that fits most distinct cells is chosen.
    If the most frequent cell is no date, all entries of the mask are false, and the format is None.
    """
    formats = list(candidate_formats(cells.texts[int(cells.counts.argmax())].as_py()))
    if not formats:
        return np.zeros(len(cells.texts), dtype=bool), None
    read = [are_read(cells.texts, date_format) for date_format in formats]
    best = int(np.argmax([mask.sum() for mask in read]))
    return read[best], formats[best]


def _like_dates(cells: Cells) -> str | None:
    """Returns the warning that pandas can parse nearly all cells as dates, although the library
    knows no format for them; else None."""
    texts = pd.Series(cells.stripped.slice(0, _LOOKED_AT_TEXTS).to_pylist(), dtype=str)
    may_be = texts.str.fullmatch(_WORDS_OF_DATES) & texts.str.contains(_YEAR_OR_MONTH)
    if may_be.mean() < NEARLY:
        return None
    with catch_warnings():
        simplefilter("ignore")  # words that pandas parses as time zones
        times = pd.to_datetime(texts, format="mixed", errors="coerce", utc=True)
    if times.notna().mean() < NEARLY:
        return None
    return (
        f"is treated as text although it looks like dates, such as {shortened(texts[0])}: set its"
        ' datetime_format in the schema in the notation of strptime, such as "%d %b %Y"; rewrite'
        " what no such format reads, such as 1st and 2nd"
    )


_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_WEEKDAY = "mon|tue|wed|thu|fri|sat|sun"
_WORDS_OF_DATES = rf"(?i)(?:[\d\s.,:/'+-]|(?:{_MONTH}|{_WEEKDAY})[a-z]*|th|st|nd|rd|of|t|z|[ap]m)+"
_YEAR_OR_MONTH = rf"(?i)\b[12]\d{{3}}\b|(?<![a-z])(?:{_MONTH})"


def _matches(texts: pa.Array, pattern: str) -> Mask:
    return mask_of(pc.match_substring_regex(texts, pattern))


def column_notes(cells: Cells, column: Column, draft: Draft) -> Iterator[str]:
    """Yields data-quality warnings on a column, given its cells that are not missing and its
    inferred schema. Nothing is said about properties that the user specified (`draft`)."""
    says = set(draft)
    if is_unnamed(column.name) and says <= {"name"}:
        yield ("has no name in the table and is named as in pandas; name it there, or drop it")
    if "markers" not in draft.get("missing", {}):
        yield from _like_markers(cells, column)
    if is_modelled_record_key(column, key_texts(cells)):
        yield REAL_KEYS_WARNING
    if column.kind.outcomes is Outcomes.KEYS and "kind" not in says:
        yield from _copies_of_keys(cells)
    if column.kind.outcomes is Outcomes.NOMINAL_LEVELS and not says & {"kind", "levels"}:
        yield from _spellings_of_levels(cells)


def _like_markers(cells: Cells, column: Column) -> Iterator[str]:
    """Yields a warning on frequent numbers or dates that are far from all others of a column, and
    therefore may mean "missing"."""
    values = _values(cells, column) if (cells.counts > 1).any() else None
    if values is None:
        return
    order = np.argsort(values)
    ordered, counts = values[order], cells.counts[order]
    near = without_isolated(ordered, counts, _LEAST_SHARE, FEWEST_OTHERS)
    is_apart = np.ones(len(values), dtype=bool)
    is_apart[near] = False
    if near.stop - near.start <= _MANY_OTHERS and not column.has_times:
        is_apart &= _matches(cells.texts.take(order), _NINES)
    if (ordered < 0).sum() == 1 and len(values) > FEWEST_VALUES and not column.has_times:
        is_apart[0] |= counts[0] >= 3 * counts[1]
    chosen = sorted(order[is_apart & (counts > 1)].tolist(), key=lambda i: -cells.counts[i])
    if not chosen:
        return
    texts = cells.texts.take(chosen).to_pylist()
    found = [
        f"{text} in {cells.counts[i]} cells (the first in {_place(cells, i)})"
        for text, i in zip(texts[:MOST_SHOWN], chosen, strict=False)
    ]
    listed = ", ".join(f'"{marker}"' for marker in [*column.missing.markers, *texts])
    yield (
        f"has {', '.join(found)}, far from all other values; if it means missing, set"
        f" missing.markers to [{listed}]"
    )


def _values(cells: Cells, column: Column) -> Numbers | None:
    """Returns the distinct numbers of a modelled column, dates as seconds since 1970; None for a
    column without numbers or dates."""
    if column.has_times and not is_time_of_day(column.date_format):
        times = cells.times(column.date_format)
        return times.astype("datetime64[s]").astype(np.float64)
    if not column.is_modelled or not column.kind.may_be_numbers or cells.numbers is None:
        return None
    return cells.numbers.astype(np.float64)


def _copies_of_keys(cells: Cells) -> Iterator[str]:
    """Yields a warning if values of an identifier repeat, unless a value contains a space, because
    phrases are hardly keys."""
    is_copied = cells.counts > 1
    if not is_copied.any() or pc.any(pc.match_substring_regex(cells.stripped, r"\s")).as_py():
        return
    code = int(np.argmax(is_copied))  # the first in the table
    rows = np.flatnonzero(cells.codes == code)[:2]
    n = int(is_copied.sum())
    which = "one of its values occurs" if n == 1 else f"{n} of its values occur"
    yield (
        f"looks like a key, but {which} more than once, {'' if n == 1 else 'first '}"
        f"{_shown(cells, code)} in {cells.row_location(int(rows[0]))} and"
        f" {cells.row_location(int(rows[1]))}; synthetic rows have each value once"
    )


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
        f" {_shown(cells, usual)} ({_n_cells(cells, usual)}) and {_shown(cells, rare)}"
        f" ({_n_cells(cells, rare)}, the first in {_place(cells, rare)}){more}"
    )


def _shown(cells: Cells, i: int) -> str:
    return shortened(cells.texts[i].as_py())


def _n_cells(cells: Cells, i: int) -> str:
    n = int(cells.counts[i])
    return f"{n} cell" if n == 1 else f"{n} cells"


def _place(cells: Cells, i: int) -> str:
    return cells.row_location(int(np.argmax(cells.codes == i)))
