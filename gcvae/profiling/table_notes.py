"""Data-quality warnings on a whole table, such as on repeated rows or a last row of totals.

The columns are passed one at a time while the schema is inferred, so that memory holds only one
column of a file and a few numbers per row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from gcvae.cells.distinct_cells import Cells, shortened
from gcvae.files.source_columns import SourceColumns
from gcvae.schema.columns import Column
from gcvae.schema.kinds import Outcomes

FEW_ROWS = 50  # a table with fewer rows gets a warning
ENOUGH_ROWS = 500  # recommended number of rows
REPEATED_SHARE = 0.02  # minimum share of rows that copy earlier rows, for a warning
BEYOND_CHANCE = 10  # minimum ratio of copies to those expected if columns were independent
EXPLAINED = 0.5  # minimum ratio of copied rows to repeated cells of the most varied column
FEWEST_ABOVE_TOTAL = 3  # minimum number of numeric cells above a row of totals
MOSTLY = 0.9  # minimum share of cells that contain a separator equally often
_TOTAL = re.compile(
    r"(grand |sub ?)?totals?|sum|summe|gesamt(summe)?|insgesamt|somme|suma|totale|total general"
    r"|合计|总计|合計|итого|всего",
    re.IGNORECASE,
)
_HASH = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplication modulo 2^64 is one-to-one

_SEPARATORS = ((";", "a semicolon"), ("\t", "a tab"), ("|", "a bar"), (",", "a comma"))


class TableNotes:
    """Collects data-quality warnings on a table, whose columns are passed one by one to
    `add_column`.

    Attributes:
        hidden_separator: Warning that the cells of the table's only column look like whole rows
            with a separator, such as "1;Berlin"; None for other tables.
    """

    def __init__(self, source: SourceColumns) -> None:
        """Prepares an empty collection for the table `source`; no column is read here."""
        self._source = source
        self._n_columns = 0
        self._sums: list[str] = []  # columns whose last cell is the sum of the cells above
        self._total_label: tuple[str, str] | None = None  # column and cell such as "Total"
        self._n_last_blank = 0
        self._repeats_header = np.ones(len(source), dtype=bool)
        self._is_blank = np.ones(len(source), dtype=bool)
        self._hashes = np.zeros(len(source), dtype=np.uint64)
        self._single_texts: list[str] = []  # columns in which each level occurs in one row
        self._most_distinct = 0
        self._chance = 1.0  # probability that two rows are equal if columns are independent
        self.hidden_separator: str | None = None

    def add_column(self, cells: Cells, present: Cells, column: Column) -> None:
        """Records one column for the warnings that `sentences` yields: all its cells, those that
        are not missing (`present`), and its inferred schema."""
        self._n_columns += 1
        if len(self._source.names) == 1:
            self.hidden_separator = _hidden_separator(cells)
        self._add_last_cell(cells, present, column)
        place = pc.index(cells.stripped, cells.name.strip()).as_py()
        self._repeats_header &= (cells.codes == place) & (place >= 0)
        self._is_blank &= present.codes < 0
        self._hashes *= _HASH
        self._hashes += cells.codes.view(np.uint64)
        self._most_distinct = max(self._most_distinct, len(cells.texts))
        is_nominal = column.kind.outcomes is Outcomes.NOMINAL_LEVELS
        if is_nominal and len(present.texts) > 2 and (present.counts == 1).all():
            self._single_texts.append(column.name)
        n_blank = int((cells.codes < 0).sum())
        self._chance *= float((cells.counts**2).sum() + n_blank**2) / len(self._source) ** 2

    def sentences(self) -> Iterator[str]:
        """Yields the warnings on the table, as sentences, after all columns have been passed."""
        notes = (
            _few_rows(len(self._source), self._single_texts),
            self.hidden_separator,
            _index_of_frame(self._source),
            self._header_again(),
            self._blank_rows(),
            self._total(),
            self._copies(),
        )
        return (note for note in notes if note is not None)

    def _add_last_cell(self, cells: Cells, present: Cells, column: Column) -> None:
        if len(self._source) <= FEWEST_ABOVE_TOTAL:
            return
        if present.codes[-1] < 0:
            self._n_last_blank += 1
            return
        text = cells.texts[int(cells.codes[-1])].as_py()
        if cells.counts[cells.codes[-1]] == 1 and _TOTAL.fullmatch(text.strip().rstrip(":")):
            self._total_label = (cells.name, text)
        elif column.is_modelled and column.kind.may_be_numbers and _ends_in_sum(present):
            self._sums.append(cells.name)

    def _header_again(self) -> str | None:
        rows = np.flatnonzero(self._repeats_header)
        if not len(rows) or self._n_columns < 2:
            return None
        what = "repeats the header" if len(rows) == 1 else "repeats the header, the first of"
        more = "" if len(rows) == 1 else f" {len(rows)} such rows"
        return f"{self._place(rows[0])} {what}{more}; remove it from the file, or it is a row"

    def _blank_rows(self) -> str | None:
        rows = np.flatnonzero(self._is_blank)
        if not len(rows) or self._n_columns < 2:
            return None
        return (
            f"{_counted(len(rows), 'row')} missing in every column, the first in"
            f" {self._place(rows[0])}; remove them from the file, or such rows are generated"
        )

    def _total(self) -> str | None:
        label, sums = self._total_label, self._sums
        rest_is_blank = self._n_last_blank == self._n_columns - len(sums)
        if not sums or (label is None and len(sums) == 1 and not rest_is_blank):
            return None
        named = "" if label is None else f", and {label[1]!r} in {label[0]!r}"
        return (
            f"{self._place(len(self._source) - 1)}, the last, looks like a row of totals: it has"
            f" the sum in {_shown_names(sums)} of the cells above{named};"
            " remove it from the file, or it is used in training like any other row"
        )

    def _copies(self) -> str | None:
        n_rows = len(self._source)
        order = np.argsort(self._hashes, kind="stable")
        ordered = self._hashes[order]
        is_copy = ordered[1:] == ordered[:-1]
        n_copies = int(is_copy.sum())
        by_chance = BEYOND_CHANCE * self._chance * n_rows * (n_rows - 1) / 2
        enough = max(REPEATED_SHARE * n_rows, EXPLAINED * (n_rows - self._most_distinct), by_chance)
        if n_copies < enough or n_rows < FEW_ROWS:
            return None
        second = int(order[1:][is_copy].min())
        first = int(np.argmax(self._hashes == self._hashes[second]))
        return (
            f"{_counted(n_copies, 'row')} exact copies of earlier ones ({n_copies / n_rows:.1%}),"
            f" the first is {self._place(second)}, a copy of {self._place(first)}; remove them from"
            " the file if rows should be unique"
        )

    def _place(self, row: int) -> str:
        line = self._source.line_of(int(row))
        return f"row {row}" if line is None else f"line {line}"


def _few_rows(n_rows: int, single_texts: list[str]) -> str | None:
    if n_rows >= FEW_ROWS:
        return None
    own = ""
    if single_texts:
        own = (
            f"; each value of {_shown_names(single_texts)} belongs to one row and appears unchanged"
            " in synthetic rows: declare such a column an identifier, or drop it"
        )
    return (
        f"the table has {_counted(n_rows, 'row', verb=False)}, too few for training: a model of it"
        " knows little more than the range of each column, and its rows and scores mean little;"
        f" use about {ENOUGH_ROWS} rows or more{own}"
    )


def _hidden_separator(cells: Cells) -> str | None:
    """Returns a warning if nearly all cells of the table's only column contain a separator, such as
    a semicolon, the same number of times, so that they look like whole rows. Else None."""
    for separator, name in _SEPARATORS:
        times = pc.count_substring(cells.texts, separator).to_numpy(zero_copy_only=False)
        if len(times) > 1 and times[-1] > 0 and np.mean(times == times[-1]) > MOSTLY:
            return (
                f"the table has one column, and all its cells contain {name} equally often: if"
                " there are lines above the column names, remove them from the file"
            )
    return None


def _index_of_frame(source: SourceColumns) -> str | None:
    """Returns a warning that a data frame's index is ignored; None for a file, and for an unnamed
    index of integers."""
    if source.frame is None:
        return None
    index = source.frame.index
    names = [name for name in index.names if name is not None]
    if not names and index.nlevels == 1 and pd.api.types.is_integer_dtype(index.dtype):
        return None
    what = f"index {', '.join(map(repr, names))}" if names else "index"
    return f"the frame's {what} is not a column and is ignored; reset_index() makes it one"


def _ends_in_sum(present: Cells) -> bool:
    """Returns whether the last cell of a column is the sum of the numbers above it, up to rounding,
    and exceeds each of them in absolute value."""
    if present.numbers is None:
        return False
    values = present.numbers.astype(np.float64)
    counts = present.counts.copy()
    code = int(present.codes[-1])
    last = float(values[code])
    counts[code] -= 1
    if counts.sum() < FEWEST_ABOVE_TOTAL:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        above = float((values * counts).sum())
        slack = 0.5 * _unit(present.numerals[code].as_py()) + 1e-9 * float(
            (np.abs(values) * counts).sum()
        )
    largest = float(np.abs(values[counts > 0]).max())
    return bool(np.isfinite(slack) and abs(last - above) <= slack and abs(last) > largest)


def _unit(text: str) -> float:
    """Returns the place value of a number's last digit: 0.01 for 12.50."""
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(10.0 ** (int(exponent or 0) - decimals))


def _shown_names(names: list[str]) -> str:
    shown = ", ".join(shortened(name) for name in names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _counted(n: int, what: str, *, verb: bool = True) -> str:
    noun = what if n == 1 else f"{what}s"
    return f"{n} {noun}" + ((" is" if n == 1 else " are") if verb else "")
