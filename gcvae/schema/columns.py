"""What the columns of a table are: kinds, ranges, levels, markers; as objects and as a document.

A schema document (JSON, version 1):

    {"version": 1,
     "columns": [{"name": "age", "kind": "integer", "missing": {"allowed": false, "markers": []},
                  "minimum": 17, "maximum": 90}, ...],
     "rules": [{"rule": "total == net + tax"}, {"rule": "start <= end", "keep": "hard"}],
     "separator": ";"}

Of a dropped column the document is `{"name": "note", "drop": true}`: its name and nothing else.
A partial document leaves out what `infer_schema` is to find. This module loads without torch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from gcvae.errors import Problem, SchemaError, UnknownColumnError, json_pointer
from gcvae.schema.kinds import ColumnKind, Outcomes, meant_kind
from gcvae.schema.number_fields import complete_numbers, read_notation, read_number_format
from gcvae.schema.personal import Personal, PersonalKind, read_personal
from gcvae.schema.rule_documents import read_rules, rule_problems, unknown_in_rules
from gcvae.schema.rules import Rule
from gcvae.schema.schema_table import schema_table
from gcvae.schema.steps import Step, read_endings, read_steps
from gcvae.schema.suggestions import NO_SUCH_COLUMN, unknown_name, unknown_names
from gcvae.spelling.forms import Notation, NumberFormat, changed_fields

SCHEMA_VERSION = 1
SEPARATORS = (",", ";", "\t", "|")
"""What may stand between the cells of a text file."""

Level = str | int | float | bool
Bound = int | float | str


@dataclass(frozen=True)
class Missing:
    """Whether a column may have missing cells, and the texts that mean one, most frequent first.

    Attributes:
        is_value: A missing cell is a value of its own, such as no second applicant; imputation
            leaves it, and learns from it.
    """

    allowed: bool = False
    markers: tuple[str, ...] = ()
    is_value: bool = False


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
        number_format: What stands between and beside the digits; None for a decimal point alone.
        levels: The outcomes, in order; of a boolean false and true, of a constant its value.
        datetime_format: As in strptime, with %-d and the like for numbers without leading zeros.
        drop: Leave the column out of the model and of what is sampled. Such a column keeps its name
            and nothing else, whatever else is said of it: its kind is that of what is not modelled.
        parquet_type: The type of the column in Parquet files, as Arrow writes it; None for the type
            of its values.
        dtype: The dtype of the column in data frames, as `gcvae.files.frame_dtypes` writes it;
            None for the library's own.
        steps: Falling steps of numbers and dates, see `gcvae.schema.steps`: the last is that of all
            cells; none for a column that has none, None where nobody has looked.
        endings: What is left beyond a step in many cells: ".99", "09:00", "month end".
        personal: What the cells are that name people or lead to them, none of which comes out;
            False where somebody says that they are nothing of the sort.
    """

    name: str
    kind: ColumnKind
    missing: Missing = field(default_factory=Missing)
    minimum: Bound | None = None
    maximum: Bound | None = None
    decimals: int | None = None
    padded: bool = False
    notation: Notation | None = None
    number_format: NumberFormat | None = None
    levels: tuple[Level, ...] | None = None
    datetime_format: str | None = None
    drop: bool = False
    parquet_type: str | None = None
    dtype: str | None = None
    steps: tuple[Step, ...] | None = None
    endings: tuple[str, ...] | None = None
    personal: Personal | None = None

    def __post_init__(self) -> None:
        """Lets a dropped column forget everything but its name."""
        if self.drop:
            bare = Column(self.name, ColumnKind.IDENTIFIER)
            for forgotten in {f.name for f in fields(self)} - {"name", "drop"}:
                object.__setattr__(self, forgotten, getattr(bare, forgotten))

    @property
    def holds_text(self) -> bool:
        """Whether the cells of the column are text in data frames, whatever they spell."""
        if self.dtype in ("object", "arrow"):
            return self.parquet_type in ("string", "large_string", "string_view")
        return self.dtype is not None and self.dtype.startswith("str")

    @property
    def duration_unit(self) -> str | None:
        """The unit in which a column of durations counts them: s, ms, us or ns; None elsewhere."""
        if self.number_format is not None and self.number_format.duration:
            return "s"
        found = (self.parquet_type or "").partition("duration[")[2]
        return found.rstrip("]") or None

    @property
    def is_modelled(self) -> bool:
        """True where the model learns this column."""
        return self.kind.is_modelled and not self.drop

    @property
    def is_made_up(self) -> bool:
        """True where the cells are personal, so that drawn rows have made-up ones."""
        return isinstance(self.personal, PersonalKind) and self.personal.is_made_up

    @property
    def has_numbers(self) -> bool:
        """True where every value is a number: of a kind of numbers, or with levels that are."""
        if self.kind.outcomes is not Outcomes.ORDERED_LEVELS:
            return self.kind.is_number
        return all(type(level) in (int, float) for level in self.levels or ())

    @property
    def has_times(self) -> bool:
        """True where the values are dates or times of day."""
        return self.kind.is_real and not self.kind.is_number

    @property
    def date_format(self) -> str:
        """How dates are written: as ISO 8601 has days, where nothing is said."""
        return self.datetime_format or "%Y-%m-%d"

    @property
    def typed_levels(self) -> tuple[Level, ...]:
        """The levels as `parse_table` gives them: False and True, whatever the words are."""
        is_pair = self.kind.outcomes is Outcomes.TRUTH_VALUES
        return (False, True) if is_pair else self.levels or ()

    def word(self, truth: bool) -> str:
        """How the column writes false or true: the levels of a boolean are its words."""
        if self.kind.outcomes is Outcomes.TRUTH_VALUES and len(self.levels or ()) == 2:
            return str((self.levels or ())[truth])
        return str(truth)

    def to_json(self) -> dict[str, Any]:
        """The column's part of a schema document, without what is not given."""
        if self.drop:
            return {"name": self.name, "drop": True}
        document: dict[str, Any] = {"name": self.name, "kind": str(self.kind)}
        document["missing"] = {
            "allowed": self.missing.allowed,
            "markers": list(self.missing.markers),
        }
        if self.missing.is_value:
            document["missing"]["is_value"] = True
        for key in ("minimum", "maximum", "decimals", "datetime_format", "parquet_type", "dtype"):
            if getattr(self, key) is not None:
                document[key] = getattr(self, key)
        if self.personal is not None:
            document["personal"] = self.personal and str(self.personal)
        if self.padded:
            document["padded"] = True
        if self.notation is not None:
            document["notation"] = changed_fields(self.notation)
        if self.number_format is not None:
            decimal = {"decimal": self.number_format.decimal}
            document["number_format"] = decimal | changed_fields(self.number_format)
        for key in ("levels", "steps", "endings"):
            if getattr(self, key) is not None:
                document[key] = list(getattr(self, key))
        return document


@dataclass(frozen=True, repr=False)
class TableSchema:
    """The columns of a table, in order, and the rules between them.

    Attributes:
        separator: Separator of the cells in the table's text file.
        rules: Rules between the columns; None if they have not been searched for.
        find_rules: Whether more rules are to be searched for beside the given ones.
    """

    columns: tuple[Column, ...]
    version: int = SCHEMA_VERSION
    separator: str = ","
    rules: tuple[Rule, ...] | None = None
    find_rules: bool = False

    def __repr__(self) -> str:
        """How many columns of which kind there are; `to_json` says the rest."""
        kinds = Counter("dropped" if c.drop else str(c.kind) for c in self.columns)
        counted = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        n_rules = f", {len(self.rules)} rules" if self.rules else ""
        return f"<TableSchema: {len(self)} columns ({counted}){n_rules}>"

    def _repr_html_(self) -> str:
        """The columns and the rules at a glance, for notebooks."""
        return schema_table((column.to_json() for column in self), self.rules or ())

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
        raise UnknownColumnError(unknown_name(NO_SUCH_COLUMN, name, self.names, column=name))

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
        document: dict[str, Any] = {
            "version": self.version,
            "columns": [column.to_json() for column in self.columns],
        }
        if self.rules is not None:
            document["rules"] = [rule.to_json() for rule in self.rules]
        if self.find_rules:
            document["find_rules"] = True
        return document if self.separator == "," else document | {"separator": self.separator}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableSchema:
        """The schema of a complete document: `from_json(to_json(s)) = s`.

        Raises:
            SchemaError: The document is malformed or incomplete; every problem has its pointer.
        """
        drafts, rules = read_document(document)
        problems = _incomplete(drafts)
        names = [draft["name"] for draft in drafts]
        problems += unknown_in_rules(rules or (), names)
        if problems:
            raise SchemaError(*problems)
        columns = tuple(Column(**draft) for draft in drafts)
        schema = cls(
            columns,
            separator=document.get("separator") or ",",
            rules=rules,
            find_rules=bool(document.get("find_rules")),
        )
        if misfits := rule_problems(rules or (), schema):
            raise SchemaError(*misfits)
        return schema


Draft = dict[str, Any]
_MEMBERS = {"version", "columns", "rules", "find_rules", "separator"}


def read_document(document: object) -> tuple[list[Draft], tuple[Rule, ...] | None]:
    """Returns the given fields of the columns, and the rules, of a partial document.

    The rules are None if it has no member `rules`.

    Raises:
        SchemaError: The document is malformed; every problem has its pointer.
    """
    if not isinstance(document, Mapping):
        raise SchemaError(
            Problem("the schema is not an object", "/", expected='{"columns": [...]}')
        )
    problems = _no_constraints(document)
    problems += _unknown_keys(document, _MEMBERS | {"constraints"}, "")
    version = document.get("version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION or isinstance(version, bool):
        problems.append(
            Problem(f"schema version {version!r} is not known", "/version", expected="1")
        )
    separator = document.get("separator")
    if separator is not None and separator not in SEPARATORS:
        message = f"separator can not be {_shown(separator)}"
        problems.append(Problem(message, "/separator", expected="one of , ; | and a tab"))
    drafts = _read_columns(document.get("columns") or [], problems)
    if not isinstance(document.get("find_rules", False), bool | None):
        message = f"find_rules can not be {_shown(document['find_rules'])}"
        problems.append(Problem(message, "/find_rules", expected="true or false"))
    rules = document.get("rules")
    dates = {draft.get("name", "") for draft in drafts if draft.get("kind") == "datetime"}
    read = None if rules is None else read_rules(rules, problems, dates)
    if problems:
        raise SchemaError(*problems)
    return drafts, read


def _no_constraints(document: Mapping[str, Any]) -> list[Problem]:
    """Returns the problem of constraints, which are rules now; a list of none is accepted."""
    if not document.get("constraints"):
        return []
    expected = (
        '"rules": [{"rule": "start <= end", "keep": "hard"}, {"rule": "combinations(city, '
        'country)", "keep": "hard"}], and "find_rules": true to search for others'
    )
    return [Problem("constraints are hard rules now", "/constraints", expected=expected)]


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
    problems += _no_never(item, pointer)
    problems += _unknown_keys(item, _FIELD_NAMES | {"never"}, pointer)
    if not isinstance(item.get("name"), str) or not item["name"]:
        problems.append(Problem("a column has no name", f"{pointer}/name", expected="text"))
    draft: Draft = {}
    for key, value in item.items():
        if key in _READERS and value is not None:
            try:
                draft[key] = _READERS[key](value)
            except ValueError as error:
                problems.append(_field_problem(item, key, value, pointer, str(error)))
    if draft.get("drop"):  # whatever else is said of it
        return {key: draft[key] for key in ("name", "drop") if key in draft}
    return draft


def _no_never(item: Mapping[str, Any], pointer: str) -> list[Problem]:
    """Returns the problem of sentinel dates, which are ordinary values; a list of none is
    accepted."""
    if not item.get("never"):
        return []
    message = "dates of the years 1 to 9999 are ordinary values now"
    name = item["name"] if isinstance(item.get("name"), str) else None
    expected = 'no member never; "missing": {"markers": [...]} has the texts that mean missing'
    return [Problem(message, f"{pointer}/never", column=name, expected=expected)]


def _field_problem(
    item: Mapping[str, Any], key: str, value: object, pointer: str, expected: str
) -> Problem:
    name = item["name"] if isinstance(item.get("name"), str) else None
    message = f"{key} can not be {_shown(value)}"
    meant = meant_kind(value) if key == "kind" and isinstance(value, str) else None
    return Problem(message, f"{pointer}/{key}", column=name, expected=expected, suggestion=meant)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _read_name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("text")
    return value


def _read_kind(value: object) -> ColumnKind:
    for kind in ColumnKind:
        if kind == value:
            return kind
    hint = '; "drop": true leaves a column out' if value == "drop" else ""
    raise ValueError("one of " + ", ".join(ColumnKind) + hint)


def _read_missing(value: object) -> Mapping[str, Any]:
    """The given part of `missing`: a mapping, since each part may be left open."""
    expected = '{"allowed": true or false, "markers": [text, ...], "is_value": true or false}'
    if isinstance(value, Missing):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if not isinstance(value, Mapping) or set(value) - {f.name for f in fields(Missing)}:
        raise ValueError(expected)
    given = {key: item for key, item in value.items() if item is not None}
    if not all(isinstance(given.get(key, True), bool) for key in ("allowed", "is_value")):
        raise ValueError(expected)
    markers = given.get("markers", [])
    if not isinstance(markers, list | tuple) or not all(isinstance(m, str) for m in markers):
        raise ValueError(expected)
    return given | ({"markers": tuple(markers)} if "markers" in given else {})


def _read_bound(value: object) -> Bound:
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not _is_finite(value):
        raise ValueError("a number, or a date as text; none for no limit")
    return value


def _is_finite(value: Level) -> bool:
    """Whether JSON, and so a model file, has a place for it."""
    return not isinstance(value, float) or math.isfinite(value)


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
    if not all(map(_is_finite, value)):
        raise ValueError("levels that are finite")
    if len({(isinstance(level, bool), level) for level in value}) < len(value):
        raise ValueError("every level once")
    return tuple(value)


def _read_datetime_format(value: object) -> str:
    from gcvae.spelling.date_text import check_format

    if not isinstance(value, str):
        raise ValueError("a format such as %Y-%m-%d")
    return check_format(value)


def _read_parquet_type(value: object) -> str:
    from gcvae.schema.parquet_types import parquet_type

    try:
        return str(parquet_type(str(value)))
    except ValueError:
        raise ValueError("a type as Arrow writes it, such as int32 or date32[day]") from None


def _read_dtype(value: object) -> str:
    from gcvae.schema.dtypes import checked_dtype

    try:
        return checked_dtype(str(value))
    except ValueError:
        raise ValueError("a dtype of pandas, such as int8, Int64, category or period[M]") from None


_READERS: dict[str, Any] = {
    "name": _read_name,
    "kind": _read_kind,
    "missing": _read_missing,
    "minimum": _read_bound,
    "maximum": _read_bound,
    "decimals": _read_decimals,
    "padded": _read_flag,
    "notation": read_notation,
    "number_format": read_number_format,
    "levels": _read_levels,
    "datetime_format": _read_datetime_format,
    "drop": _read_flag,
    "parquet_type": _read_parquet_type,
    "dtype": _read_dtype,
    "steps": read_steps,
    "endings": read_endings,
    "personal": read_personal,
}
_FIELD_NAMES = {f.name for f in fields(Column)}


def _incomplete(drafts: list[Draft]) -> list[Problem]:
    """Completes `missing`, number formats and limits in place; the problem of each column that
    lacks what its kind needs."""
    problems = []
    for i, draft in enumerate(drafts):
        if draft.get("drop"):
            draft["kind"] = ColumnKind.IDENTIFIER
        problems += personal_problems(draft, f"/columns/{i}")
        draft["missing"] = replace(Missing(), **draft.get("missing", {}))
        problems += complete_numbers(draft, f"/columns/{i}")
        needed = draft["kind"].needed if "kind" in draft else "kind"
        if needed is not None and needed not in draft:
            problems.append(
                Problem(f"{needed} is not given", f"/columns/{i}", column=draft.get("name"))
            )
    return problems


def personal_problems(draft: Draft, pointer: str) -> list[Problem]:
    """That a column's kind is not the one that its personal cells ask for."""
    personal = draft.get("personal")
    if not isinstance(personal, PersonalKind) or "kind" not in draft:
        return []
    wanted = ColumnKind.IDENTIFIER if personal.is_made_up else ColumnKind.DATETIME
    if draft["kind"] is wanted:
        return []
    message = f"personal is {personal}, but the kind is {draft['kind']}"
    expected = f"kind {wanted}, or personal false"
    return [Problem(message, f"{pointer}/personal", column=draft.get("name"), expected=expected)]


def _unknown_keys(document: Mapping[str, Any], known: set[str], pointer: str) -> list[Problem]:
    name = document["name"] if isinstance(document.get("name"), str) else None
    unknown = [str(key) for key in document if key not in known]
    places = [(key, {"pointer": pointer + json_pointer(key), "column": name}) for key in unknown]
    known_names = sorted(known - {"constraints", "never"})
    return unknown_names("there is no such member", places, known_names)
