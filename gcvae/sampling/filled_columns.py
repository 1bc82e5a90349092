"""Chooses the columns whose missing cells an imputation fills, leaves, or keeps as information.

    filled   missing cells are replaced by values
    left     missing cells stay, and count as unknown values, which are integrated out
    kept     missing cells stay, and count as information ("no second applicant")

Loads without torch, because the service checks requests in the API process.
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
    """Columns whose missing cells an imputation fills, and columns in which it keeps them as
    information. Missing cells of all other columns stay missing and count as unknown.

    Attributes:
        filled: Columns to fill; never identifiers or columns with `drop` in the schema.
        kept: Columns in which a missing cell is information; never columns in `filled`.
        named: Columns that the caller named, which the table must contain.
    """

    filled: frozenset[str]
    kept: frozenset[str]
    named: tuple[str, ...] = ()


def filled_columns(
    schema: TableSchema,
    columns: Sequence[str] | None = None,
    keep_missing: Sequence[str] | None = None,
) -> FilledColumns:
    """Returns the columns to fill and the columns to keep, after checking a caller's choice.

    Args:
        columns: Columns to fill; None for all whose missing cells are not kept.
        keep_missing: Columns in which a missing cell is information. None for the columns that
            have `missing.is_value` in the schema and are not in `columns`.

    Raises:
        UnknownColumnError: The schema does not contain a named column.
        SettingError: `columns` is empty, or a column cannot be filled, or is both filled and kept.
    """
    _check_names(schema, columns, "columns")
    _check_names(schema, keep_missing, "keep_missing")
    named = tuple(dict.fromkeys(columns or ()))
    fillable = [c.name for c in schema if c.kind.outcomes is not Outcomes.KEYS and not c.drop]
    problems = [
        *_unfillable(named, fillable),
        *(_both(i, name) for i, name in enumerate(keep_missing or ()) if name in named),
    ]
    if problems:
        raise SettingError(*problems)
    if keep_missing is None:
        kept = {column.name for column in schema if column.missing.is_value}.difference(named)
    else:
        kept = set(keep_missing)
    filled = named if columns is not None else [name for name in fillable if name not in kept]
    return FilledColumns(frozenset(filled), frozenset(kept), named)


def read_names(text: str, pointer: str) -> list[str]:
    """Parses a list of names separated by commas; a name with a comma is quoted, as in CSV.

    >>> read_names('age, "price, net"', "?columns")
    ['age', 'price, net']

    Args:
        text: The list.
        pointer: Name of the parameter, for error messages.

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
    """Raises an error if a list of column names for the parameter `member` is malformed or names an
    unknown column, or if `columns` is empty."""
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


def _unfillable(named: Sequence[str], fillable: Sequence[str]) -> list[Problem]:
    message = "identifiers and dropped columns are not filled"
    return [
        Problem(message, f"/columns/{i}", column=name, expected="a column that the model draws")
        for i, name in enumerate(named)
        if name not in fillable
    ]


def _both(number: int, name: str) -> Problem:
    message, expected = "its missing cells are to be filled and to be kept", "one of the two"
    return Problem(message, f"/keep_missing/{number}", column=name, expected=expected)
