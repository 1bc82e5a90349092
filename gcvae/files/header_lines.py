"""What stands above the rows of a delimited text: a line that names the separator, and the names.

sep=;       as Excel writes and reads it
a;b;c
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from gcvae.errors import Problem, TableError
from gcvae.files.delimited_rows import MOST_PROBLEMS, refuse_encoding
from gcvae.schema.columns import SEPARATORS

MOST_NAME_CHARACTERS = 500
_UNNAMED = re.compile(r"Unnamed: \d+(\.\d+)*")
_SEPARATOR_LINE = re.compile(rb'("?)sep=([^"\r\n])\1(\r?\n|\Z)', re.IGNORECASE)


def separator_line(data: bytes) -> tuple[str, int] | None:
    """(separator, bytes of the line) of a first line such as sep=; and None of another one.

    Raises:
        TableError: It names a character that is no separator.
    """
    found = _SEPARATOR_LINE.match(data)
    if found is None:
        return None
    separator = found[2].decode("latin-1")
    if separator not in SEPARATORS:
        message = f"the line says that {separator!r} stands between the cells"
        expected = f"one of {' '.join(map(repr, SEPARATORS))}"
        raise TableError(Problem(message, line=1, expected=expected))
    return separator, found.end()


@dataclass(frozen=True)
class Header:
    """The names of a text's columns.

    Attributes:
        start, end: Bytes of the text before the line of names, and before the rows.
        lines_above: Physical lines before the line of names.
        lines: Those before the rows.
    """

    names: list[str]
    start: int
    end: int
    lines_above: int
    lines: int

    @classmethod
    def read(cls, data: bytes, separator: str, start: int) -> Self:
        """The names of a text that has a line that names the separator up to `start`, or 0.

        Raises:
            TableError: They are no text, or a name is endless.
        """
        above = data.count(b"\n", 0, start)
        stream = io.BytesIO(data)
        stream.seek(start)
        reader = csv.reader(_decoded(stream, data[start:], above, start), delimiter=separator)
        try:
            names = next((record for record in reader if record), None)
        except csv.Error as error:
            raise TableError(_unread(data[start:], separator, above, error)) from None
        if names is None:
            message = "the file has no line of names"
            raise TableError(Problem(message, line=above + 1, expected="the names of the columns"))
        return cls(_with_names(names), start, stream.tell(), above, above + reader.line_num)

    def check(self) -> None:
        """Lets names pass of which none is used twice, and one at least is none of ours.

        Raises:
            TableError: Others.
        """
        names = self.names
        if all(not name.strip() for name in names):
            message = "the line of names has no name"
            raise TableError(Problem(message, line=self.lines, expected="the names of the columns"))
        first = {name: i for i, name in reversed(list(enumerate(names)))}
        problems = [
            Problem(
                f"the name {name!r} is used for columns {first[name] + 1} and {i + 1}",
                line=self.lines,
                expected="every name once",
            )
            for i, name in enumerate(names)
            if first[name] != i
        ]
        if len(problems) > MOST_PROBLEMS:
            more = Problem(f"{len(problems) - MOST_PROBLEMS} more names are used twice")
            problems = [*problems[:MOST_PROBLEMS], more]
        if problems:
            raise TableError(*problems)


def is_unnamed(name: str) -> bool:
    """Whether a name stands for none."""
    return _UNNAMED.fullmatch(name) is not None


def _decoded(stream: io.BytesIO, data: bytes, lines: int, offset: int) -> Iterator[str]:
    while line := stream.readline():
        try:
            yield line.decode()
        except UnicodeDecodeError:
            refuse_encoding(data, lines, offset)


def _unread(data: bytes, separator: str, lines: int, error: csv.Error) -> Problem:
    """What is wrong with a line of names that Python's reader does not take."""
    between = re.escape(separator.encode())
    cell = re.compile(rb'(?:"[^"]*+(?:""[^"]*+)*+"?|)[^\r\n' + between + rb"]*+")
    place, start = 1, len(data) - len(data.lstrip(b"\r\n"))
    while found := cell.match(data, start):
        if found.end() - start > csv.field_size_limit():
            message = f"the name of column {place} has over {csv.field_size_limit():,} characters"
            if data.startswith(b'"', start) and found.end() == len(data):
                message += ", as no quote closes it"
            return Problem(message, line=lines + 1, expected=f"at most {MOST_NAME_CHARACTERS}")
        if data[found.end() : found.end() + 1] != separator.encode():
            break
        place, start = place + 1, found.end() + 1
    return Problem(f"the header can not be read: {error}", line=lines + 1)


def _with_names(names: list[str]) -> list[str]:
    """The names, those of columns that have none as pandas gives them: `Unnamed: 0`.

    Such are the indexes that `DataFrame.to_csv` writes, and the columns behind a last comma; who
    reads the file by pandas finds the same names. Where no column has a name, none is given.
    """
    if not any(name.strip() for name in names):
        return names
    given, taken = [], set(names)
    for i, name in enumerate(names):
        if name.strip():
            given.append(name)
            continue
        new, n = f"Unnamed: {i}", 0
        while new in taken:
            n += 1
            new = f"Unnamed: {i}.{n}"
        given.append(new)
    return given
