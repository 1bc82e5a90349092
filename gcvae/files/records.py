"""The records of a delimited text, found by one pattern.

    record = cell (separator cell)* line-end
    cell   = "..." in which "" is a quote, and spaces behind it; or what does not begin with a quote

    data[:end_of_records(data)]      whole records; what follows has not ended, or is no record

A line ends with LF, CR LF or CR. Lines are counted from 1 and as in the file, so a record whose
quoted cells have line ends takes several; a blank line is no record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gcvae.errors import Problem, TableError


class LineNumbers:
    """The line at which each row of a text file begins, by the row's label: its number from 0.

    It stays itself when a frame's attributes are copied, and serves every part of the frame.
    """

    def __init__(self, starts: range | npt.NDArray[np.int64]) -> None:
        """Shape: (n,)."""
        self._starts = starts

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._starts)

    def __getitem__(self, label: Any) -> int | None:
        """The line of the row with that label; None where it is no row of the file."""
        is_row = isinstance(label, int | np.integer) and 0 <= label < len(self)
        return int(self._starts[label]) if is_row else None

    def __deepcopy__(self, memo: object) -> LineNumbers:
        """The object itself, which nothing changes."""
        return self

    def of(self, rows: npt.NDArray[np.int64]) -> LineNumbers:
        """Those of some rows, which are numbered from 0 again."""
        starts = self._starts
        return LineNumbers(starts.start + rows if isinstance(starts, range) else starts[rows])

    @classmethod
    def joined(cls, chunks: Sequence[LineNumbers]) -> LineNumbers:
        """The lines of rows that come chunk after chunk; at least one chunk."""
        starts = [chunk._starts for chunk in chunks]
        whole = range(starts[0][0], starts[0][0] + sum(map(len, starts)))
        if all(isinstance(each, range) for each in starts) and starts[-1][-1] == whole[-1]:
            return cls(whole)
        return cls(np.concatenate([np.asarray(each, dtype=np.int64) for each in starts]))


@dataclass(frozen=True)
class _Grammar:
    """The patterns of one separator.

    Attributes:
        cells: The whole cells at a record's beginning, all but the last.
        stray: A quoted cell that text follows, and the first character of that.
    """

    record: re.Pattern[bytes]
    records: re.Pattern[bytes]
    cells: re.Pattern[bytes]
    stray: re.Pattern[bytes]


@cache
def _grammar(separator: str) -> _Grammar:
    between = re.escape(separator.encode())
    quoted = rb'"[^"]*+(?:""[^"]*+)*+" *+'
    cell = rb"(?:%b(?=[%b\r\n])|(?!\")[^%b\r\n]*+)" % (quoted, between, between)
    record = rb"%b(?:%b%b)*+(?:\r\n|\r|\n)" % (cell, between, cell)
    return _Grammar(
        record=re.compile(record),
        records=re.compile(rb"(?:%b)*+" % record),
        cells=re.compile(rb"(?:%b%b)*+" % (cell, between)),
        stray=re.compile(rb"%b[^%b\r\n]" % (quoted, between)),
    )


def end_of_record(data: bytes, separator: str, start: int = 0) -> int | None:
    """Where the record that begins at `start` ends; None where it does not."""
    found = _grammar(separator).record.match(data, start)
    return None if found is None else found.end()


def end_of_records(data: bytes, separator: str) -> int:
    """Where the last whole record ends of data that begin with one; 0 where none does."""
    quotes = _edge_quotes(data, separator) if b'"' in data else np.empty(0, dtype=np.int64)
    if quotes is None:
        found = _grammar(separator).records.match(data)
        return found.end() if found else 0
    place = len(data)
    while (place := max(data.rfind(b"\n", 0, place), data.rfind(b"\r", 0, place))) >= 0:
        n_before = int(np.searchsorted(quotes, place))
        if n_before % 2 == 0:
            break
        place = int(quotes[n_before - 1])  # which opens the cell that the line ends in
    return place + 1


def _edge_quotes(data: bytes, separator: str) -> npt.NDArray[np.int64] | None:
    """The places of all quotes where they open and close cells in turns, as in most files; else
    None. It says nothing that the pattern does not, in a fifth of its time.
    """
    text = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    is_edge = np.zeros(256, dtype=bool)
    is_edge[[ord(separator), ord("\r"), ord("\n")]] = True
    begin = is_edge[text[quotes[::2] - 1]] | (quotes[::2] == 0)
    end = is_edge[text.take(quotes[1::2] + 1, mode="clip")]
    return quotes if begin.all() and end.all() else None


def refuse_stray_quotes(rest: bytes, separator: str, line: int) -> None:
    """Lets the beginning of a record pass that may go on as one.

    Of `"x"y` readers make `xy`, `x` or `"x"y`: nobody knows what was meant.

    Args:
        rest: What follows the whole records of a text.
        separator: Between its cells.
        line: At which it begins.

    Raises:
        TableError: Text follows the closing quote of a cell.
    """
    grammar = _grammar(separator)
    whole = grammar.cells.match(rest)
    found = grammar.stray.match(rest, whole.end() if whole else 0)
    if found:
        expected = f'{separator!r} or the line\'s end, or "" for a quote within quotes'
        line += n_line_ends(rest[: found.end()])
        raise TableError(Problem("text follows a closing quote", line=line, expected=expected))


def n_line_ends(data: bytes) -> int:
    """How many lines end in the data."""
    n_ends = data.count(b"\n")
    return n_ends + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else n_ends


def record_lines(data: bytes, separator: str, line: int, rows: int) -> LineNumbers:
    """The lines at which whole records begin.

    Args:
        data: The records.
        separator: Between their cells.
        line: At which the first line begins.
        rows: How many records there are.
    """
    if rows == n_line_ends(data.rstrip(b"\r\n")) + 1:
        return LineNumbers(range(line, line + rows))
    records = _grammar(separator).record.finditer(data)
    starts = [record.start() for record in records if data[record.start()] not in b"\r\n"]
    text = np.frombuffer(data, dtype=np.uint8)
    is_end = text == ord("\n")
    is_end[:-1] |= (text[:-1] == ord("\r")) & (text[1:] != ord("\n"))
    return LineNumbers(line + np.searchsorted(np.flatnonzero(is_end), starts))
