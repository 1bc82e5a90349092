"""What stands above the rows of a delimited text: a line that names the separator, and the names.

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
MOST_PROBLEMS = 10  # rows and names that are listed one by one
_SHORT_NAMES = f"names of at most {MOST_NAME_CHARACTERS} characters"
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


def read_names(record: bytes, separator: str, line: int, offset: int) -> list[str]:
    """The names of a text's columns.

    Args:
        record: That holds them.
        separator: Between them.
        line, offset: Of the text, where the record begins.

    Raises:
        TableError: It is no text in UTF-8, or a name is endless.
    """
    refuse_encoding(record, line, offset)
    try:
        (names,) = csv.reader([record.decode()], delimiter=separator)
    except csv.Error:  # nothing else stops a reader that is not strict
        message = f"the name of a column has over {csv.field_size_limit():,} characters"
        raise TableError(Problem(message, line=line, expected=_SHORT_NAMES)) from None
    return _with_names(names)


def check_names(names: Sequence[str], line: int) -> None:
    """Lets names pass of which none is used twice, and one at least is none of ours.

    Raises:
        TableError: Others.
    """
    if all(not name.strip() for name in names):
        message = "the line of names has no name"
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
    """Whether a name stands for none."""
    return _UNNAMED.fullmatch(name) is not None


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
