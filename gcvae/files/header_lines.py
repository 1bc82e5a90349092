"""Header of a delimited text: an optional line that names the separator, and the column names.

sep=;       as Excel writes and reads it
a;b;c
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from gcvae.errors import Problem, TableError
from gcvae.files.text_encodings import refuse_encoding
from gcvae.schema.columns import SEPARATORS

MOST_NAME_CHARACTERS = 500
MOST_PROBLEMS = 10  # maximum number of listed rows and names
_SHORT_NAMES = f"names of at most {MOST_NAME_CHARACTERS} characters"
_UNNAMED = re.compile(r"Unnamed: \d+(\.\d+)*")
_SEPARATOR_LINE = re.compile(rb'("?)sep=([^"\r\n])\1(\r?\n|\Z)', re.IGNORECASE)


def separator_line(data: bytes) -> tuple[str, int] | None:
    """Returns (separator, length of the line in bytes) if the file begins with a line such as
    `sep=;`; else None.

    Raises:
        TableError: The line names a character that is not supported as separator.
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


def read_names(record: bytes, separator: str, line: int, offset: int) -> list[str]:
    """Returns the column names in a header, which may span several lines of the file.

    The header begins at the line `line`, counted from 1, after `offset` bytes of the file.

    Raises:
        TableError: The header is not UTF-8, or a name is too long.
    """
    refuse_encoding(record, line, offset)
    try:
        (names,) = csv.reader([record.decode()], delimiter=separator)
    except csv.Error:  # raised only for a name that is too long
        message = f"the name of a column has over {csv.field_size_limit():,} characters"
        raise TableError(Problem(message, line=line, expected=_SHORT_NAMES)) from None
    return _with_names(names)


def check_names(names: Sequence[str], line: int) -> None:
    """Raises a TableError about the header's line if no column has a name, or if a name occurs
    twice."""
    if all(not name.strip() for name in names):
        message = "the header line contains no name"
        raise TableError(Problem(message, line=line, expected="the names of the columns"))
    first = {name: i for i, name in reversed(list(enumerate(names)))}
    problems = [
        Problem(
            f"the name {name!r} is used for columns {first[name] + 1} and {i + 1}",
            line=line,
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
    """Returns whether a column name is a placeholder for a missing one, such as `Unnamed: 0`."""
    return _UNNAMED.fullmatch(name) is not None


def _with_names(names: list[str]) -> list[str]:
    """Replaces each empty name by `Unnamed: ` and the column's index. If all names are empty, they
    stay empty, so that `check_names` refuses them."""
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
