"""Which blanks an imputation fills, which it leaves, and which say something themselves.

    filled   blanks are replaced by values
    left     blanks stay; what they stand for is not known, and is integrated out
    kept     blanks stay; they are values of their own ("no second applicant"), and are known

Loads without torch: the service checks a request before any worker sees it.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from gcvae.errors import InputError, Problem, SettingError, UnknownColumnError
from gcvae.schema.columns import TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.schema.suggestions import NO_SUCH_COLUMN, unknown_names


@dataclass(frozen=True)
class FilledColumns:
    """The columns whose blanks are filled, and those whose blanks are values; all others are left.

    Attributes:
        filled: Never identifiers, nor dropped columns.
        kept: None of `filled`.
        asked: Were named to be filled, so the table has to have them.
    """

    filled: frozenset[str]
    kept: frozenset[str]
    asked: tuple[str, ...] = ()


def filled_columns(
    schema: TableSchema,
    columns: Sequence[str] | None = None,
    keep_blanks: Sequence[str] | None = None,
) -> FilledColumns:
    """What is asked of an imputation, checked.

    Args:
        schema: Of the model's table.
        columns: To be filled; where not given, all whose blanks are not kept.
        keep_blanks: Columns whose blanks are values; where not given, those of which the schema
            says so (`missing.is_value`) and which `columns` does not name.

    Raises:
        UnknownColumnError: There is no such column.
        SettingError: Nothing is named, a column can not be filled, or is to be filled and kept.
    """
    _check_names(schema, columns, "columns")
    _check_names(schema, keep_blanks, "keep_blanks")
    asked = tuple(dict.fromkeys(columns or ()))
    fillable = [c.name for c in schema if c.kind.outcomes is not Outcomes.KEYS and not c.drop]
    problems = [
        *_unfillable(asked, fillable),
        *(_both(i, name) for i, name in enumerate(keep_blanks or ()) if name in asked),
    ]
    if problems:
        raise SettingError(*problems)
    if keep_blanks is None:
        kept = {column.name for column in schema if column.missing.is_value}.difference(asked)
    else:
        kept = set(keep_blanks)
    filled = asked if columns is not None else [name for name in fillable if name not in kept]
    return FilledColumns(frozenset(filled), frozenset(kept), asked)


def read_names(text: str, pointer: str) -> list[str]:
    """Names with commas between; one that has a comma itself stands in quotes, as in CSV.

    >>> read_names('age, "price, net"', "?columns")
    ['age', 'price, net']

    Raises:
        InputError: A quote is not closed.
    """
    try:
        [names] = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        message = f"{text!r} is no list of names"
        expected = 'names with commas between, such as age,"price, net"'
        raise InputError(Problem(message, pointer, expected=expected)) from error
    return names


def _check_names(schema: TableSchema, names: Sequence[str] | None, member: str) -> None:
    """Lets a list of columns of the schema pass; of those to be filled one at least."""
    if names is None:
        return
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        expected = f"a list of names, such as {[*schema.names][:1]}"
        raise SettingError(Problem(f"{member} is {names!r}", f"/{member}", expected=expected))
    if not names and member == "columns":
        raise SettingError(Problem("columns names none", "/columns", expected="one name at least"))
    places = [
        (name, {"pointer": f"/{member}/{i}", "column": name})
        for i, name in enumerate(names)
        if name not in schema
    ]
    if places:
        raise UnknownColumnError(*unknown_names(NO_SUCH_COLUMN, places, schema.names))


def _unfillable(asked: Sequence[str], fillable: Sequence[str]) -> list[Problem]:
    message = "identifiers and dropped columns are not filled"
    return [
        Problem(message, f"/columns/{i}", column=name, expected="a column that the model draws")
        for i, name in enumerate(asked)
        if name not in fillable
    ]


def _both(number: int, name: str) -> Problem:
    message, expected = "its blanks are to be filled, and to be kept", "one of the two"
    return Problem(message, f"/keep_blanks/{number}", column=name, expected=expected)
