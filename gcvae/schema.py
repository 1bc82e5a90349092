"""What the columns of a table are: kinds, ranges, levels, markers; as objects and as a document.

A schema document (JSON, version 1):

    {"version": 1,
     "columns": [{"name": "age", "kind": "integer", "missing": {"allowed": false, "markers": []},
                  "minimum": 17, "maximum": 90}, ...],
     "constraints": [{"kind": "inequality", "low": "start", "high": "end", "strict": false}]}

A partial document leaves out what `infer_schema` is to find. This module loads without torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from gcvae.constraints import Constraint, constraint_columns, read_constraints
from gcvae.errors import Problem, SchemaError, UnknownColumnError

if TYPE_CHECKING:
    import pandas as pd

    from gcvae.table_reader import TableReader

SCHEMA_VERSION = 1

Level = str | int | float | bool
Bound = int | float | str


class ColumnKind(StrEnum):
    """What a column is to the model."""

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    ORDINAL = "ordinal"
    CATEGORICAL = "categorical"
    BOOLEAN = "boolean"
    DATETIME = "datetime"
    IDENTIFIER = "identifier"
    CONSTANT = "constant"

    @property
    def has_levels(self) -> bool:
        """True where the outcomes are listed."""
        return self in (ColumnKind.ORDINAL, ColumnKind.CATEGORICAL, ColumnKind.BOOLEAN)

    @property
    def is_real(self) -> bool:
        """True where the outcomes lie on a line."""
        return self in (ColumnKind.CONTINUOUS, ColumnKind.INTEGER, ColumnKind.DATETIME)

    @property
    def is_modelled(self) -> bool:
        """False for identifiers and constants, of which the model learns nothing."""
        return self.has_levels or self.is_real


@dataclass(frozen=True)
class Missing:
    """Whether a column may have missing cells, and the texts that mean one, most frequent first."""

    allowed: bool = False
    markers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Notation:
    """How a column spells its numbers, where shortest plain decimals are not the spelling.

    Attributes:
        point: Whole numbers are written with ".0", as Python does.
        significant: Every number is written with this many significant digits.
        exponent_below: Magnitudes under this are written with an exponent.
        exponent_from: Magnitudes from this on are written with an exponent.
        mantissa_decimals: Decimals before the exponent; None for as many as needed.
        exponent: The spelling of an exponent of 1: "e+01", "E01", "e1".
    """

    point: bool = False
    significant: int | None = None
    exponent_below: float | None = None
    exponent_from: float | None = None
    mantissa_decimals: int | None = None
    exponent: str = "e+01"


@dataclass(frozen=True)
class Column:
    """One column: its kind and what that kind needs.

    Attributes:
        name: As in the header.
        kind: What the column is to the model.
        missing: Whether cells may be missing, and how that is written.
        minimum: Smallest value that may come out; a datetime is text in the column's format.
        maximum: Largest value that may come out.
        decimals: Most decimals of a number, digits of a second of a datetime; None for no limit.
            An identifier with 0 is a whole number, without it is text.
        padded: Every number is written with exactly `decimals` decimals.
        notation: How numbers are spelled where plain decimals are not the spelling.
        levels: The outcomes, in order; of a boolean false and true, of a constant its value.
        datetime_format: As in strptime, with %-d and the like for numbers without leading zeros.
        drop: Leave the column out of the model and of what is sampled.
        parquet_type: The type of the column in Parquet files, as Arrow writes it; None for the type
            of its values.
    """

    name: str
    kind: ColumnKind
    missing: Missing = field(default_factory=Missing)
    minimum: Bound | None = None
    maximum: Bound | None = None
    decimals: int | None = None
    padded: bool = False
    notation: Notation | None = None
    levels: tuple[Level, ...] | None = None
    datetime_format: str | None = None
    drop: bool = False
    parquet_type: str | None = None

    @property
    def is_modelled(self) -> bool:
        """True where the model learns this column."""
        return self.kind.is_modelled and not self.drop

    def to_json(self) -> dict[str, Any]:
        """The column's part of a schema document, without what is not given."""
        document: dict[str, Any] = {"name": self.name, "kind": str(self.kind)}
        document["missing"] = {
            "allowed": self.missing.allowed,
            "markers": list(self.missing.markers),
        }
        for key in ("minimum", "maximum", "decimals", "datetime_format", "parquet_type"):
            if getattr(self, key) is not None:
                document[key] = getattr(self, key)
        document.update({key: True for key in ("padded", "drop") if getattr(self, key)})
        if self.notation is not None:
            document["notation"] = _changed_fields(self.notation)
        if self.levels is not None:
            document["levels"] = list(self.levels)
        return document


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table, in order, and the constraints between them."""

    columns: tuple[Column, ...]
    constraints: tuple[Constraint, ...] = ()
    version: int = SCHEMA_VERSION

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        """The column of that name.

        Raises:
            UnknownColumnError: There is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise UnknownColumnError(_unknown_column(name, self.names))

    def __contains__(self, name: object) -> bool:
        """True where there is a column of that name."""
        return name in self.names

    def __iter__(self) -> Iterator[Column]:
        """The columns, in order."""
        return iter(self.columns)

    def __len__(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def to_json(self) -> dict[str, Any]:
        """The schema document, of JSON types only."""
        return {
            "version": self.version,
            "columns": [column.to_json() for column in self.columns],
            "constraints": [constraint.to_json() for constraint in self.constraints],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableSchema:
        """The schema of a complete document: `from_json(to_json(s)) = s`.

        Raises:
            SchemaError: The document is malformed or incomplete; every problem has its pointer.
        """
        drafts, constraints = read_document(document)
        problems = _incomplete(drafts)
        problems += unknown_in_constraints(constraints, [draft["name"] for draft in drafts])
        if problems:
            raise SchemaError(*problems)
        return cls(tuple(Column(**draft) for draft in drafts), constraints)


@dataclass(frozen=True)
class InferredSchema:
    """A complete schema and what its user should look at."""

    schema: TableSchema
    warnings: tuple[str, ...] = ()


def infer_schema(
    rows: pd.DataFrame | TableReader, given: Mapping[str, Any] | TableSchema | None = None
) -> InferredSchema:
    """The schema of a table, read from all its rows; what `given` says wins.

    Args:
        rows: Cells as text (of a text file) or typed; or a file, of which memory holds a column at
            a time.
        given: A schema, or a document that may leave anything out.

    Raises:
        SchemaError: `given` is malformed or contradicts the table.
        TableError: The table has no rows, no columns, or nothing but constants.
    """
    from gcvae.inference import complete_schema  # inference builds on the classes above
    from gcvae.source_columns import source_columns

    with source_columns(rows) as source:
        return complete_schema(source, given)


Draft = dict[str, Any]


def read_document(document: object) -> tuple[list[Draft], tuple[Constraint, ...]]:
    """The columns' given fields, each with its name, and the constraints of a partial document.

    Raises:
        SchemaError: The document is malformed; every problem has its pointer.
    """
    if not isinstance(document, Mapping):
        raise SchemaError(
            Problem("the schema is not an object", "/", expected='{"columns": [...]}')
        )
    problems = _unknown_keys(document, {"version", "columns", "constraints"}, "")
    version = document.get("version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION or isinstance(version, bool):
        problems.append(
            Problem(f"schema version {version!r} is not known", "/version", expected="1")
        )
    drafts = _read_columns(document.get("columns") or [], problems)
    constraints = read_constraints(document.get("constraints") or [], problems)
    if problems:
        raise SchemaError(*problems)
    return drafts, constraints


def _read_columns(listed: object, problems: list[Problem]) -> list[Draft]:
    if not isinstance(listed, list | tuple):
        problems.append(
            Problem("columns is not a list", "/columns", expected='[{"name": ..., "kind": ...}]')
        )
        return []
    drafts = [_read_column(item, f"/columns/{i}", problems) for i, item in enumerate(listed)]
    seen: set[str] = set()
    for i, draft in enumerate(drafts):
        name = draft.get("name")
        if name in seen:
            problems.append(Problem(f"column {name!r} is listed twice", f"/columns/{i}/name"))
        seen.add(str(name))
    return drafts


def _read_column(item: object, pointer: str, problems: list[Problem]) -> Draft:
    if not isinstance(item, Mapping):
        problems.append(Problem("a column is not an object", pointer, expected='{"name": ...}'))
        return {}
    problems += _unknown_keys(item, _FIELD_NAMES, pointer)
    if not isinstance(item.get("name"), str) or not item["name"]:
        problems.append(Problem("a column has no name", f"{pointer}/name", expected="text"))
    draft: Draft = {}
    for key, value in item.items():
        if key in _READERS and value is not None:
            try:
                draft[key] = _READERS[key](value)
            except ValueError as error:
                problems.append(_field_problem(item, key, value, pointer, str(error)))
    return draft


def _field_problem(
    item: Mapping[str, Any], key: str, value: object, pointer: str, expected: str
) -> Problem:
    name = item["name"] if isinstance(item.get("name"), str) else None
    message = f"{key} can not be {_shown(value)}"
    return Problem(message, f"{pointer}/{key}", column=name, expected=expected)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _read_name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("text")
    return value


def _read_kind(value: object) -> ColumnKind:
    try:
        return ColumnKind(value)  # type: ignore[arg-type]
    except ValueError:
        hint = '; "drop": true leaves a column out' if value == "drop" else ""
        raise ValueError("one of " + ", ".join(ColumnKind) + hint) from None


def _read_missing(value: object) -> Mapping[str, Any]:
    """The given part of `missing`: a mapping, since either half may be left open."""
    expected = '{"allowed": true or false, "markers": [text, ...]}'
    if isinstance(value, Missing):
        return {"allowed": value.allowed, "markers": value.markers}
    if not isinstance(value, Mapping) or set(value) - {"allowed", "markers"}:
        raise ValueError(expected)
    given = {key: item for key, item in value.items() if item is not None}
    if not isinstance(given.get("allowed", True), bool):
        raise ValueError(expected)
    markers = given.get("markers", [])
    if not isinstance(markers, list | tuple) or not all(isinstance(m, str) for m in markers):
        raise ValueError(expected)
    return given | ({"markers": tuple(markers)} if "markers" in given else {})


def _read_bound(value: object) -> Bound:
    if isinstance(value, bool) or not isinstance(value, int | float | str) or value != value:
        raise ValueError("a number, or a date as text")
    return value


def _read_decimals(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 30:
        raise ValueError("a whole number from 0 to 30")
    return value


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _read_levels(value: object) -> tuple[Level, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("a list of levels")
    if not all(isinstance(level, str | int | float | bool) for level in value):
        raise ValueError("levels that are text, numbers or booleans")
    if len({(isinstance(level, bool), level) for level in value}) < len(value):
        raise ValueError("every level once")
    return tuple(value)


def _read_datetime_format(value: object) -> str:
    from gcvae.dates import check_format

    if not isinstance(value, str):
        raise ValueError("a format such as %Y-%m-%d")
    return check_format(value)


def _read_parquet_type(value: object) -> str:
    from gcvae.parquet_types import parquet_type

    try:
        return str(parquet_type(str(value)))
    except ValueError:
        raise ValueError("a type as Arrow writes it, such as int32 or date32[day]") from None


def _read_notation(value: object) -> Notation:
    from gcvae.notation import check_notation

    if not isinstance(value, Mapping) or set(value) - {f.name for f in fields(Notation)}:
        raise ValueError("an object of " + ", ".join(f.name for f in fields(Notation)))
    return check_notation(Notation(**value))


_READERS: dict[str, Any] = {
    "name": _read_name,
    "kind": _read_kind,
    "missing": _read_missing,
    "minimum": _read_bound,
    "maximum": _read_bound,
    "decimals": _read_decimals,
    "padded": _read_flag,
    "notation": _read_notation,
    "levels": _read_levels,
    "datetime_format": _read_datetime_format,
    "drop": _read_flag,
    "parquet_type": _read_parquet_type,
}
_FIELD_NAMES = {f.name for f in fields(Column)}


def _incomplete(drafts: list[Draft]) -> list[Problem]:
    """Completes `missing` in place; the problem of each column that lacks what its kind needs."""
    problems = []
    for i, draft in enumerate(drafts):
        draft["missing"] = replace(Missing(), **draft.get("missing", {}))
        needed = _needed(draft)
        if needed not in draft:
            problems.append(
                Problem(f"{needed} is not given", f"/columns/{i}", column=draft.get("name"))
            )
    return problems


def _needed(draft: Draft) -> str:
    if "kind" not in draft:
        return "kind"
    if draft["kind"].has_levels:
        return "levels"
    return "datetime_format" if draft["kind"] is ColumnKind.DATETIME else "kind"


def unknown_in_constraints(constraints: tuple[Constraint, ...], names: list[str]) -> list[Problem]:
    return [
        replace(_unknown_column(name, tuple(names)), pointer=f"/constraints/{i}")
        for i, constraint in enumerate(constraints)
        for name in constraint_columns(constraint)
        if name not in names
    ]


def _unknown_keys(document: Mapping[str, Any], known: set[str], pointer: str) -> list[Problem]:
    name = document["name"] if isinstance(document.get("name"), str) else None
    return [
        Problem(f"unknown key {key!r}", f"{pointer}/{key}", column=name, expected=_one_of(known))
        for key in document
        if key not in known
    ]


def _unknown_column(name: str, known: tuple[str, ...]) -> Problem:
    shown = known if len(known) <= 20 else (*known[:20], "...")
    return Problem("there is no such column", column=name, expected="one of " + ", ".join(shown))


def _one_of(names: set[str]) -> str:
    return "one of " + ", ".join(sorted(names))


def _changed_fields(notation: Notation) -> dict[str, Any]:
    plain = Notation()
    pairs = ((f.name, getattr(notation, f.name)) for f in fields(notation))
    return {name: value for name, value in pairs if value != getattr(plain, name)}
