"""Column schemas: kinds, limits, levels and formats, as objects and as a JSON document.

    {"version": 1,
     "columns": [{"name": "age", "kind": "integer", "missing": {"allowed": false, "markers": []},
                  "minimum": 17, "maximum": 90}, ...],
     "rules": [{"rule": "total == net + tax"}, {"rule": "start <= end", "keep": "hard"}],
     "separator": ";"}

A dropped column is written `{"name": "note", "drop": true}`. In a partial JSON document, members
may be absent; `infer_schema` infers them from a table. This module loads without torch.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timezone
from typing import Any

from gcvae.errors import Problem, SchemaError, UnknownColumnError, json_pointer
from gcvae.figures.html_tables import lines_table, paragraphs
from gcvae.schema.kinds import ColumnKind, Outcomes, meant_kind
from gcvae.schema.personal import Personal, PersonalKind, read_personal
from gcvae.schema.rule_documents import read_rules, rule_problems, unknown_in_rules
from gcvae.schema.rules import Rule
from gcvae.schema.steps import Step, read_endings, read_steps
from gcvae.schema.suggestions import NO_SUCH_COLUMN, unknown_name, unknown_names
from gcvae.spelling.forms import Notation, NumberFormat, changed_fields

SCHEMA_VERSION = 1
DRAW_COLUMN = "draw"
"""Name of the column in which `impute` numbers the draws of each row."""
SEPARATORS = (",", ";", "\t", "|")
"""Characters that may separate the cells of a text file."""

_MOST_SHOWN_LEVELS = 6

Level = str | int | float | bool
Bound = int | float | str


@dataclass(frozen=True)
class Missing:
    """Missing cells of a column: whether they may occur, and how they are written.

    Attributes:
        allowed: Whether cells may be missing.
        markers: Texts that mark a missing cell, most frequent first.
        is_value: Whether a missing cell carries information, such as "no second applicant".
            Imputation then leaves such cells missing and conditions on them.
    """

    allowed: bool = False
    markers: tuple[str, ...] = ()
    is_value: bool = False


@dataclass(frozen=True)
class Column:
    """Schema of one column: its kind, and the properties that columns of this kind have.

    Attributes:
        name: Name in the table's header.
        kind: Kind of the column, such as continuous or categorical.
        missing: Whether cells may be missing, and how missing cells are written.
        minimum: Smallest value that is generated, for a datetime as a string in its format; None
            for no limit.
        maximum: Largest value that is generated, like `minimum`.
        decimals: Maximum number of decimals of a number, or of a date's seconds; None for no limit.
            In an identifier, 0 means that keys are whole numbers, and None that they are strings.
        padded: Whether every number is written with exactly `decimals` decimals.
        notation: How digits are written, such as with exponents; None for plain decimals.
        number_format: Separators, signs and units of numbers; None if numbers have only a decimal
            point.
        levels: Possible values (categories) of an ordinal, categorical or boolean column, in order
            (false before true); the only value of a constant; None for other kinds.
        datetime_format: Format as for strptime, in which %-d, %-m, %-H and %-I denote numbers
            without leading zeros.
        drop: Whether the column is excluded from the model and from generated rows. All other
            fields of a dropped column except its name are reset.
        parquet_type: Arrow's name of the column's type in Parquet files; None for the default type
            of its values.
        dtype: Name of the column's dtype in data frames; None for the library's default.
        steps: Spacings of numbers or dates in descending order, such as 1 and 0.05 or "1 week" and
            "1 day". All cells are multiples of the last one, plus an ending. Empty if there are
            none, None if they have not been searched for.
        endings: Common remainders of the cells after subtraction of a multiple of a step: ".99",
            "09:00", "month end"; None if there are none.
        personal: Kind of personal data in the cells, which the model never generates; False if the
            user states that they are not personal; None if unspecified.
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
        """Resets all fields of a dropped column except its name."""
        if self.drop:
            bare = Column(self.name, ColumnKind.IDENTIFIER)
            for forgotten in {f.name for f in fields(self)} - {"name", "drop"}:
                object.__setattr__(self, forgotten, getattr(bare, forgotten))

    @property
    def holds_text(self) -> bool:
        """Whether data frames contain the column's cells as strings, according to its dtype."""
        if self.dtype in ("object", "arrow"):
            return self.parquet_type in ("string", "large_string", "string_view")
        return self.dtype is not None and self.dtype.startswith("str")

    @property
    def duration_unit(self) -> str | None:
        """Unit in which durations are counted: s, ms, us or ns; None without durations."""
        if self.number_format is not None and self.number_format.duration:
            return "s"
        found = (self.parquet_type or "").partition("duration[")[2]
        return found.rstrip("]") or None

    @property
    def is_modelled(self) -> bool:
        """Whether the model learns this column; False for identifiers, constants and dropped
        columns."""
        return self.kind.is_modelled and not self.drop

    @property
    def is_made_up(self) -> bool:
        """Whether generated rows contain made-up instead of learned cells, because the cells are
        personal data other than dates of birth."""
        return isinstance(self.personal, PersonalKind) and self.personal.is_made_up

    @property
    def is_key(self) -> bool:
        """Whether equal cells mean the same entity, such as a customer. True for identifiers,
        except those that are personal data of a kind that several people may share, such as names
        or addresses."""
        is_shared = isinstance(self.personal, PersonalKind) and not self.personal.is_number
        return self.kind.outcomes is Outcomes.KEYS and not is_shared and not self.drop

    @property
    def has_numbers(self) -> bool:
        """Whether every value is a number: the kind is continuous or integer, or all levels are
        numbers."""
        if self.kind.outcomes is not Outcomes.ORDERED_LEVELS:
            return self.kind.is_number
        return all(type(level) in (int, float) for level in self.levels or ())

    @property
    def has_times(self) -> bool:
        """Whether the values are dates or times of day."""
        return self.kind.is_real and not self.kind.is_number

    @property
    def date_format(self) -> str:
        """Format of the column's dates: `datetime_format`, or "%Y-%m-%d" if that is None."""
        return self.datetime_format or "%Y-%m-%d"

    @property
    def typed_levels(self) -> tuple[Level, ...]:
        """Levels (categories) as they appear in parsed tables: False and True for a boolean column,
        whatever strings it has in files."""
        is_pair = self.kind.outcomes is Outcomes.TRUTH_VALUES
        return (False, True) if is_pair else self.levels or ()

    def word(self, truth: bool) -> str:
        """Returns the column's text for a truth value: the corresponding level if the column is
        boolean or has the levels 0 and 1; else "False" or "True"."""
        levels = self.levels or ()
        is_pair = self.kind.outcomes is Outcomes.TRUTH_VALUES and len(levels) == 2
        return str(levels[truth] if is_pair or levels == (0, 1) else truth)

    @property
    def zone(self) -> str | timezone | None:
        """Time zone of dates, as a name or an offset from UTC; None if they have no zone."""
        from gcvae.spelling.date_text import has_offset, offset_of  # needs numpy

        named = re.search(r"tz=([^\]]+)\]", self.parquet_type or "")
        if named is not None:
            return named[1]
        has_zone = self.datetime_format is not None and has_offset(self.datetime_format)
        return timezone(offset_of(self.date_format)) if has_zone else None

    def to_json(self) -> dict[str, Any]:
        """Returns the column as a member of the schema's JSON document, without default values."""
        if self.drop:
            return {"name": self.name, "drop": True}
        missing = {"allowed": self.missing.allowed, "markers": list(self.missing.markers)}
        document: dict[str, Any] = {"name": self.name, "kind": str(self.kind), "missing": missing}
        if self.missing.is_value:
            missing["is_value"] = True
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in document and value != each.default:
                document[each.name] = _as_json(value)
        return document

    def for_other_rows(self) -> dict[str, Any]:
        """Returns the column as a partial JSON document for other rows: without the members that
        depend on the rows of one table. An ordinal column keeps levels that are texts, because
        their order cannot be inferred from rows."""
        if self.kind.outcomes is Outcomes.ONE_VALUE:
            return {"name": self.name}
        is_open = self.kind.outcomes is not Outcomes.ORDERED_LEVELS or not any(
            isinstance(level, str) for level in self.levels or ()
        )
        left_out = _OF_ROWS if is_open else _OF_ROWS - {"levels"}
        document = {name: value for name, value in self.to_json().items() if name not in left_out}
        if markers := list(self.missing.markers):
            document["missing"] = {"markers": markers}
        return document


_OF_ROWS = {
    "missing", "minimum", "maximum", "levels", "decimals", "padded", "notation", "steps", "endings"
}  # fmt: skip
"""Members of a column's document that follow from the rows of one table."""


def _as_json(value: Any) -> Any:
    if isinstance(value, NumberFormat):
        return {"decimal": value.decimal} | changed_fields(value)
    if isinstance(value, Notation):
        return changed_fields(value)
    if isinstance(value, PersonalKind):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, repr=False)
class TableSchema:
    """Description of a table: its columns, in order, and the rules between them.

    Attributes:
        columns: Columns, in the order of the table.
        version: Version of the schema's JSON format.
        separator: Character between the cells of the table's text file.
        rules: Rules between the columns; None if rules have not been searched for.
        find_rules: Whether schema inference searches for rules in addition to `rules`.
    """

    columns: tuple[Column, ...]
    version: int = SCHEMA_VERSION
    separator: str = ","
    rules: tuple[Rule, ...] | None = None
    find_rules: bool = False

    def __repr__(self) -> str:
        """Returns a summary with the number of columns of each kind."""
        kinds = Counter("dropped" if c.drop else str(c.kind) for c in self.columns)
        counted = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        n_rules = f", {len(self.rules)} rules" if self.rules else ""
        return f"<TableSchema: {len(self)} columns ({counted}){n_rules}>"

    def _repr_html_(self) -> str:
        """Returns a summary of columns and rules as HTML, for notebooks."""
        header = "column", "kind", "outcomes", "blanks"
        lines = ((column.name, *_described(column)) for column in self)
        return lines_table(header, lines) + paragraphs(f"Rule: {rule}" for rule in self.rules or ())

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        """Returns the column with this name.

        Raises:
            UnknownColumnError: No column has this name.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise UnknownColumnError(unknown_name(NO_SUCH_COLUMN, name, self.names, column=name))

    def __contains__(self, name: object) -> bool:
        """Returns whether a column has this name."""
        return name in self.names

    def __iter__(self) -> Iterator[Column]:
        """Iterates over the columns, in order."""
        return iter(self.columns)

    def __len__(self) -> int:
        """Returns the number of columns."""
        return len(self.columns)

    def to_json(self) -> dict[str, Any]:
        """Returns the schema as a JSON document, which `from_json` reads."""
        document: dict[str, Any] = {
            "version": self.version,
            "columns": [column.to_json() for column in self.columns],
        }
        if self.rules is not None:
            document["rules"] = [rule.to_json() for rule in self.rules]
        if self.find_rules:
            document["find_rules"] = True
        return document if self.separator == "," else document | {"separator": self.separator}

    def for_other_rows(self) -> dict[str, Any]:
        """Returns a partial schema for other rows of the same source, such as those of the next
        month: kinds, formats, and the rules that you stated or changed.

        Limits, levels, decimals, steps, other rules and whether cells may be missing are left out:
        they are inferred from the other rows.

        >>> prices = Column("price", ColumnKind.CONTINUOUS, minimum=1, maximum=9, decimals=2)
        >>> TableSchema((prices,)).for_other_rows()
        {'version': 1, 'columns': [{'name': 'price', 'kind': 'continuous'}]}
        """
        columns = [column.for_other_rows() for column in self.columns]
        rules = [
            replace(rule, share=None)
            for rule in self.rules or ()
            if rule.source == "given" or rule.keep != "soft"
        ]
        of_rules = None if self.rules and not rules else self.rules and tuple(rules)
        kept = replace(self, rules=of_rules, find_rules=bool(rules))
        return kept.to_json() | {"columns": columns}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableSchema:
        """Reads a complete JSON document, so that `from_json(to_json(s)) = s`.

        Raises:
            SchemaError: The document is malformed or lacks a member; each problem gives a JSON
                pointer.
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


def with_draws(schema: TableSchema) -> TableSchema:
    """Returns the schema of the table that `impute` returns, which can contain several completions
    of each row: the given schema with an additional first column "draw", the number of the
    completion. A schema that already has a column "draw" is returned unchanged."""
    if DRAW_COLUMN in schema:
        return schema
    return replace(schema, columns=(Column(DRAW_COLUMN, ColumnKind.INTEGER), *schema.columns))


def _described(column: Column) -> tuple[str, str, str]:
    if column.drop:
        return "dropped", "", ""
    return str(column.kind), _outcomes(column), "allowed" if column.missing.allowed else "none"


def _outcomes(column: Column) -> str:
    if isinstance(column.personal, PersonalKind) and column.is_made_up:
        return f"made-up {column.personal.plural}"
    if column.levels is not None:
        shown = [str(level) for level in column.levels[:_MOST_SHOWN_LEVELS]]
        n_more = len(column.levels) - len(shown)
        return ", ".join(shown) + (f" and {n_more:,} more" if n_more else "")
    ends = ["…" if end is None else str(end) for end in (column.minimum, column.maximum)]
    return "" if ends == ["…", "…"] else " to ".join(ends)


Draft = dict[str, Any]
_MEMBERS = {"version", "columns", "rules", "find_rules", "separator"}


def read_document(document: object) -> tuple[list[Draft], tuple[Rule, ...] | None]:
    """Reads a schema's JSON document, in which members may be absent.

    Returns (for each column, a dictionary of the members that the document specifies; the rules, or
    None if the document has no member `rules`).

    Raises:
        SchemaError: The document is malformed; each problem gives a JSON pointer.
    """
    if not isinstance(document, Mapping):
        raise SchemaError(
            Problem("the schema is not an object", "/", expected='{"columns": [...]}')
        )
    problems = _unknown_keys(document, _MEMBERS, "")
    version = document.get("version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION or isinstance(version, bool):
        problems.append(
            Problem(f"schema version {version!r} is not known", "/version", expected="1")
        )
    separator = document.get("separator")
    if separator is not None and separator not in SEPARATORS:
        message = f"separator cannot be {_shown(separator)}"
        problems.append(Problem(message, "/separator", expected="one of , ; | and a tab"))
    drafts = _read_columns(document.get("columns") or [], problems)
    if not isinstance(document.get("find_rules", False), bool | None):
        message = f"find_rules cannot be {_shown(document['find_rules'])}"
        problems.append(Problem(message, "/find_rules", expected="true or false"))
    rules = document.get("rules")
    read = None if rules is None else read_rules(rules, problems)
    if problems:
        raise SchemaError(*problems)
    return drafts, read


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
    """Reads one column of a JSON document, and adds any errors to `problems`."""
    if not isinstance(item, Mapping):
        problems.append(Problem("a column is not an object", pointer, expected='{"name": ...}'))
        return {}
    problems += _unknown_keys(item, _READERS, pointer)
    if not isinstance(item.get("name"), str) or not item["name"]:
        problems.append(Problem("a column has no name", f"{pointer}/name", expected="text"))
    name = item["name"] if isinstance(item.get("name"), str) else None
    draft: Draft = {}
    for key, value in item.items():
        if key in _READERS and value is not None:
            try:
                draft[key] = _READERS[key](value)
            except ValueError as error:
                meant = meant_kind(value) if key == "kind" and isinstance(value, str) else None
                message, place = f"{key} cannot be {_shown(value)}", f"{pointer}/{key}"
                problems.append(Problem(message, place, None, name, str(error), meant))
    if draft.get("drop"):  # other members are ignored
        return {key: draft[key] for key in ("name", "drop") if key in draft}
    return draft


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
    """Reads the specified fields of `missing`; schema inference determines the absent ones."""
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
    """Returns whether the value can be written in JSON, which has no infinity or NaN."""
    return not isinstance(value, float) or math.isfinite(value)


def _read_decimals(value: object) -> int:
    if type(value) is not int or not 0 <= value <= 30:
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


def _read_notation(value: object) -> Notation:
    from gcvae.spelling.number_text import check_notation

    names = [f.name for f in fields(Notation)]
    if not isinstance(value, Mapping) or set(value) - {*names}:
        raise ValueError("an object of " + ", ".join(names))
    return check_notation(Notation(**value))


def _read_number_format(value: object) -> Mapping[str, Any]:
    from gcvae.spelling.number_formats import read_members

    return read_members(value)


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


_READERS: dict[str, Callable[[Any], Any]] = {
    "name": _read_name,
    "kind": _read_kind,
    "missing": _read_missing,
    "minimum": _read_bound,
    "maximum": _read_bound,
    "decimals": _read_decimals,
    "padded": _read_flag,
    "notation": _read_notation,
    "number_format": _read_number_format,
    "levels": _read_levels,
    "datetime_format": _read_datetime_format,
    "drop": _read_flag,
    "parquet_type": _read_parquet_type,
    "dtype": _read_dtype,
    "steps": read_steps,
    "endings": read_endings,
    "personal": read_personal,
}


def _incomplete(drafts: list[Draft]) -> list[Problem]:
    """Fills in `missing`, number formats and limits of the column dictionaries, in place. Returns a
    problem for each column that contradicts itself or lacks a member that its kind requires."""
    problems = []
    for i, draft in enumerate(drafts):
        if draft.get("drop"):
            draft["kind"] = ColumnKind.IDENTIFIER
        problems += personal_problems(draft, f"/columns/{i}")
        draft["missing"] = replace(Missing(), **draft.get("missing", {}))
        problems += _complete_numbers(draft, f"/columns/{i}")
        needed = draft["kind"].needed if "kind" in draft else "kind"
        if needed is not None and needed not in draft:
            problems.append(
                Problem(f"{needed} is not given", f"/columns/{i}", column=draft.get("name"))
            )
    return problems


def _complete_numbers(draft: Draft, pointer: str) -> list[Problem]:
    """Fills in the number format of a column, and converts limits from strings to numbers, in
    place; returns a problem for a format that contradicts itself, or for each limit that is no
    number."""
    name = draft.get("name")
    if "number_format" in draft:
        from gcvae.spelling.number_formats import completed_format  # imports Arrow

        try:
            draft["number_format"] = completed_format(draft["number_format"])
        except ValueError as error:
            message = "number_format contradicts itself"
            return [Problem(message, f"{pointer}/number_format", column=name, expected=str(error))]
    if "kind" not in draft or not draft["kind"].is_number:
        return []
    problems = []
    for key in ("minimum", "maximum"):
        if isinstance(text := draft.get(key), str):
            from gcvae.spelling.number_formats import read_number

            draft[key] = read_number(text, draft.get("number_format"))
            if draft[key] is None:
                message = f"{key} is the text {text!r}"
                place = f"{pointer}/{key}"
                problems.append(Problem(message, place, column=name, expected="a number"))
    return problems


def personal_problems(draft: Draft, pointer: str) -> list[Problem]:
    """Returns a list with a problem if a column's kind contradicts its kind of personal data; else
    []. `draft` has the members of the column, as `read_document` returns them."""
    personal = draft.get("personal")
    if not isinstance(personal, PersonalKind) or "kind" not in draft:
        return []
    required = ColumnKind.IDENTIFIER if personal.is_made_up else ColumnKind.DATETIME
    if draft["kind"] is required:
        return []
    message = f"personal is {personal}, but the kind is {draft['kind']}"
    expected = f"kind {required}, or personal false"
    return [Problem(message, f"{pointer}/personal", column=draft.get("name"), expected=expected)]


def _unknown_keys(document: Mapping[str, Any], known: Iterable[str], pointer: str) -> list[Problem]:
    name = document["name"] if isinstance(document.get("name"), str) else None
    places = [
        (str(key), {"pointer": pointer + json_pointer(str(key)), "column": name})
        for key in document
        if key not in known
    ]
    return unknown_names("there is no such member", places, sorted(known))
