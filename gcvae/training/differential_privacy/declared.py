"""Checks that the user's schema specifies what differential privacy needs: limits, steps and levels
of every column.

Inferred limits and levels would disclose rows, because the largest income is that of one person.
Errors list what is missing, with the line to add to the schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gcvae.codec.rare_levels import OTHER
from gcvae.errors import Problem, SchemaError, SettingError
from gcvae.rules.grids import Grid
from gcvae.schema.columns import Column, Draft, TableSchema, read_document
from gcvae.schema.kinds import ColumnKind, Outcomes
from gcvae.schema.steps import duration, exact
from gcvae.schema.suggestions import NO_SUCH_COLUMN, unknown_name
from gcvae.training.differential_privacy.budget import Budget

_TARGET = "/differential_privacy/target"


@dataclass(frozen=True)
class DeclaredTable:
    """The user's schema, in the order of the table's columns. It has been checked, and specifies
    all limits and levels that differential privacy needs.

    Attributes:
        document: The schema as a JSON-compatible dict.
        columns: The modelled columns, whose values are counted.
        discovered: Names of the columns whose levels have to be discovered.
    """

    document: dict[str, Any]
    columns: tuple[Column, ...]
    discovered: tuple[str, ...] = ()

    @property
    def schema(self) -> TableSchema:
        """The schema, with all specified and discovered levels."""
        return TableSchema.from_json(self.document)

    def with_levels(self, levels: Mapping[str, Sequence[str]]) -> DeclaredTable:
        """Returns a copy with discovered levels, in alphabetical order and followed by `OTHER`.

        Args:
            levels: Discovered levels by column name.
        """
        listed = {name: [*sorted(set(found) - {OTHER}), OTHER] for name, found in levels.items()}
        columns = [
            column | ({"levels": listed[column["name"]]} if column["name"] in listed else {})
            for column in self.document["columns"]
        ]
        counted = tuple(
            replace(c, levels=tuple(listed[c.name])) if c.name in listed else c
            for c in self.columns
        )
        return replace(self, document=self.document | {"columns": columns}, columns=counted)


def declared_table(
    names: Sequence[str], given: TableSchema | Mapping[str, Any] | None, budget: Budget
) -> DeclaredTable:
    """Checks the user's schema and returns it in the order of the table's columns.

    Args:
        names: Names of the table's columns.
        given: The user's schema; None for an empty one.
        budget: Privacy budget, which also names the target column and the columns whose levels are
            discovered.

    Raises:
        SchemaError: The schema lacks columns, limits or levels; each problem contains the line to
            add.
        SettingError: The target does not exist or has no levels; or a column whose levels are to be
            discovered does not exist or is not categorical.
    """
    document = given.to_json() if isinstance(given, TableSchema) else dict(given or {})
    drafts, _ = read_document(document)
    by_name = {draft["name"]: (i, draft) for i, draft in enumerate(drafts)}
    problems = [
        unknown_name(NO_SUCH_COLUMN, name, names, pointer=f"/columns/{i}/name", column=name)
        for name, (i, _) in by_name.items()
        if name not in names
    ]
    for name in names:
        if name not in by_name:
            problems.append(_missing("the column", name, "/columns/-", _line_of_column(name)))
        else:
            i, draft = by_name[name]
            problems += _undeclared(draft, f"/columns/{i}", name in budget.discover)
    if problems:
        raise SchemaError(*problems)
    ordered = [_with_other(document["columns"][by_name[name][0]], name, budget) for name in names]
    schema = TableSchema.from_json(document | {"columns": ordered})
    counted = tuple(column for column in schema if column.is_modelled)
    _check_grids(counted)
    _check_roles(schema, budget)
    return DeclaredTable(document | {"columns": ordered}, counted, budget.discover)


def _line_of_column(name: str) -> str:
    line = json.dumps({"name": name, "kind": "..."}, ensure_ascii=False)
    return f'{line} with what its kind needs, or "drop": true'


def _missing(what: str, name: str, pointer: str, line: str) -> Problem:
    message = f"{what} must be declared under differential privacy"
    return Problem(message, pointer, column=name, expected=line)


def _undeclared(draft: Draft, pointer: str, is_discovered: bool) -> list[Problem]:
    """Returns a problem for each member that the user's schema of one column lacks."""
    if draft.get("drop"):
        return []
    name, kind = draft["name"], draft.get("kind")
    if kind is None:
        line = f'"kind": one of {", ".join(ColumnKind)}'
        return [_missing("kind", name, f"{pointer}/kind", line)]
    lines = _LINES[kind.outcomes]
    if kind.outcomes is Outcomes.REAL:
        lines = lines | _lines_of_grid(kind)
    if "allowed" not in draft.get("missing", {}) and kind.is_modelled:
        lines = lines | {"missing": '"missing": {"allowed": false}, or true'}
    absent = [key for key in lines if key == "missing" or draft.get(key) is None]
    return [
        _missing(key, name, f"{pointer}/{key}", lines[key])
        for key in absent
        if not (key == "levels" and is_discovered)
    ]


def _lines_of_grid(kind: ColumnKind) -> dict[str, str]:
    if kind.is_whole:
        return {}
    if kind.is_number:
        return {"decimals": '"decimals": 2, the most that a cell has'}
    return {"datetime_format": '"datetime_format": "%Y-%m-%d", as strptime has it'}


_LEVELS = {"levels": '"levels": [...], every level that there can be'}
_LINES: dict[Outcomes, dict[str, str]] = {
    Outcomes.REAL: {
        "minimum": '"minimum": the smallest value that there can be',
        "maximum": '"maximum": the largest value that there can be',
    },
    Outcomes.ORDERED_LEVELS: _LEVELS,
    Outcomes.NOMINAL_LEVELS: {
        "levels": _LEVELS["levels"] + ', or its name in "discover" of differential_privacy'
    },
    Outcomes.TRUTH_VALUES: {"levels": '"levels": ["no", "yes"], the false one first'},
    Outcomes.KEYS: {},
    Outcomes.ONE_VALUE: {"levels": '"levels": [the value]'},
}


def _with_other(column: Mapping[str, Any], name: str, budget: Budget) -> dict[str, Any]:
    """Returns the schema of a column as a dict. If its levels are still to be discovered, `OTHER`
    is its only level."""
    is_open = name in budget.discover and not column.get("levels")
    return dict(column) | ({"levels": [OTHER]} if is_open else {})


def _check_grids(columns: Sequence[Column]) -> None:
    """Checks that the numbers or dates between a column's limits can be enumerated.

    Raises:
        SchemaError: No value is between a column's limits, there are too many, or the values are
            not multiples of one unit such as 0.01 or one day.
    """
    problems = []
    for column in columns:
        if column.kind.outcomes is not Outcomes.REAL:
            continue
        place = f"/columns/{column.name}"
        grid = Grid.of(column)
        if grid is None:
            expected = "days or times of day" if column.has_times else "at most 9 decimals"
            message = "its values cannot be counted as steps between its bounds"
            problems.append(Problem(message, column=column.name, expected=expected))
        elif grid.low > grid.high:
            problems.append(Problem("its bounds have no value between them", column=column.name))
        elif grid.high - grid.low >= 1 << 52:
            message = "its bounds are too far apart to count the steps between them"
            problems.append(Problem(message, place, column=column.name, expected="fewer decimals"))
    if problems:
        raise SchemaError(*problems)


def _check_roles(schema: TableSchema, budget: Budget) -> None:
    """Checks that the target column has levels, and that all columns whose levels are to be
    discovered are categorical.

    Raises:
        SettingError: A column does not exist or is of another kind.
    """
    problems = []
    if budget.target is not None:
        of_levels = [column.name for column in schema if column.kind.has_levels]
        if budget.target not in of_levels:
            message = "the target is no column with levels"
            problems.append(unknown_name(message, budget.target, of_levels, pointer=_TARGET))
    nominal = [c.name for c in schema if c.kind.outcomes is Outcomes.NOMINAL_LEVELS]
    for i, name in enumerate(budget.discover):
        if name not in nominal:
            message = "only levels of categorical columns can be discovered"
            place = f"/differential_privacy/discover/{i}"
            problems.append(unknown_name(message, name, nominal, pointer=place))
    if problems:
        raise SettingError(*problems)


@dataclass(frozen=True)
class ValueLine:
    """The possible values of a column of numbers or dates between its limits, indexed from 0.

    Attributes:
        grid: Conversion between values and multiples of the column's resolution (such as 0.01 or
            one day).
        first: First value, as a multiple of the resolution.
        stride: Distance of neighbouring values, as a multiple of the resolution.
        n: Number of values.
    """

    grid: Grid
    first: int
    stride: int
    n: int

    @classmethod
    def of(cls, column: Column) -> ValueLine:
        """Returns the possible values of a column whose schema specifies limits and resolution."""
        grid = Grid.of(column)
        assert grid is not None, "a declared column has a grid"
        stride = _stride(column, grid)
        first = -(-grid.low // stride) * stride
        if first > grid.high:
            first, stride = grid.low, 1
        return cls(grid, first, stride, (grid.high - first) // stride + 1)


def _stride(column: Column, grid: Grid) -> int:
    """Returns the distance of neighbouring values, in multiples of the column's resolution. It is
    the schema's step, or 1 if no step is given or the step is not a multiple of the resolution."""
    if not column.steps:
        return 1
    step = column.steps[-1]
    if grid.step is not None:
        length = duration(step) or grid.step
        return max(1, length // grid.step) if length % grid.step == 0 else 1
    places = exact(float(step)) * grid.per_unit if isinstance(step, int | float) else exact(1.0)
    return int(places) if places.denominator == 1 else 1
