"""Schema of a database: its tables, their keys, and the columns that order their rows.

{"tables": {"users": {"primary_key": ["id"]},
            "sessions": {"foreign_keys": [{"columns": ["user_id"], "table": "users"}],
                         "order": "started"}}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from gcvae.errors import Problem, SchemaError, json_pointer
from gcvae.schema.suggestions import unknown_name

_MEMBERS = ("primary_key", "foreign_keys", "unique", "order", "keep", "columns", "rules", "entity")
_KEY_MEMBERS = ("columns", "table", "references")


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a table whose values are keys of rows of a referenced table, or are missing.

    Attributes:
        columns: Columns of the referring table.
        table: Name of the referenced table, which may be the referring table.
        references: Columns of the referenced table, in the order of `columns`; empty stands for its
            primary key until `DatabaseSchema.with_references` fills them in.
    """

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]

    def __str__(self) -> str:
        """Returns the key as text: `user_id -> users.id`."""
        return f"{', '.join(self.columns)} -> {self.table}.{', '.join(self.references)}"

    def to_json(self) -> dict[str, Any]:
        """Returns the key as a JSON document."""
        return {
            "columns": list(self.columns),
            "table": self.table,
            "references": list(self.references),
        }


@dataclass(frozen=True)
class LinkedTable:
    """Description of one table in a database schema: its keys, its order of rows, and the columns
    and rules that the user specified.

    Attributes:
        primary_key: Columns whose values together identify a row; empty if the table has no key.
        foreign_keys: References to other tables.
        unique: Additional sets of columns whose values together do not repeat, except where a value
            is missing.
        order: Column of dates or numbers that orders the rows of each parent; None if not
            specified.
        keep: Whether the table is a catalogue, a reference table such as a list of genres, and is
            copied unchanged into every sample. None: inferred.
        entity: Column with repeated keys that determine other columns, such as the customers of a
            table of orders. The model divides such a table into a table of entities and a table of
            their rows. False: no such column. None: inferred.
        columns: Schemas of columns that the user specified, in the JSON form of `TableSchema`.
        rules: Rules that the user specified, in the same form; None: inferred.
    """

    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    order: str | None = None
    keep: bool | None = None
    entity: str | bool | None = None
    columns: tuple[Mapping[str, Any], ...] = ()
    rules: tuple[Any, ...] | None = None
    unique: tuple[tuple[str, ...], ...] = ()

    @property
    def referring(self) -> tuple[str, ...]:
        """Columns of all foreign keys."""
        return tuple(column for key in self.foreign_keys for column in key.columns)

    @property
    def document(self) -> dict[str, Any] | None:
        """JSON schema document of the columns and rules that the user specified; None without
        any."""
        rules = {} if self.rules is None else {"rules": list(self.rules)}
        found = ({"columns": list(self.columns)} if self.columns else {}) | rules
        return found or None

    def to_json(self) -> dict[str, Any]:
        """Returns the table as a JSON document."""
        found: dict[str, Any] = {
            "primary_key": list(self.primary_key),
            "foreign_keys": [key.to_json() for key in self.foreign_keys],
        }
        if self.unique:
            found["unique"] = [list(columns) for columns in self.unique]
        for name in ("order", "keep", "entity"):
            if getattr(self, name) is not None:
                found[name] = getattr(self, name)
        return found | (self.document or {})


@dataclass(frozen=True)
class DatabaseSchema:
    """Schema of the tables of a database.

    Attributes:
        tables: Tables by name.
    """

    tables: Mapping[str, LinkedTable] = field(default_factory=dict)

    def __getitem__(self, name: str) -> LinkedTable:
        """Returns the table of the given name."""
        return self.tables[name]

    def to_json(self) -> dict[str, Any]:
        """Returns the schema as a JSON document."""
        return {"tables": {name: table.to_json() for name, table in self.tables.items()}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Reads the JSON document of a schema; every member of a table is optional.

        Raises:
            SchemaError: A member is unknown or malformed, or a foreign key names an unknown table.
        """
        problems: list[Problem] = []
        listed = document.get("tables") if isinstance(document, Mapping) else None
        if not isinstance(listed, Mapping):
            message = "the schema of a database has no tables"
            expected = '{"tables": {"users": {"primary_key": ["id"]}, ...}}'
            raise SchemaError(Problem(message, "/tables", expected=expected))
        tables = {str(n): _read_table(str(n), each, problems) for n, each in listed.items()}
        for name, table in tables.items():
            for i, key in enumerate(table.foreign_keys):
                if key.table not in tables:
                    pointer = json_pointer("tables", name, "foreign_keys", i, "table")
                    message = f"there is no table {key.table!r}"
                    problems.append(unknown_name(message, key.table, tables, pointer=pointer))
        if problems:
            raise SchemaError(*problems)
        return cls(tables)

    def with_references(self) -> Self:
        """Returns the schema after filling in the primary key for foreign keys without
        `references`.

        Raises:
            SchemaError: The referenced table has no primary key with the same number of columns, a
                key references itself, or two foreign keys share a column.
        """
        problems, tables = [], {}
        for name, table in self.tables.items():
            keys: list[ForeignKey] = []
            for i, key in enumerate(table.foreign_keys):
                found = key.references or self.tables[key.table].primary_key
                if key.table == name and found == key.columns:
                    pointer = json_pointer("tables", name, "foreign_keys", i)
                    message = f"the key {replace(key, references=found)} refers to itself"
                    expected = "columns that hold the key of another row"
                    problems.append(Problem(message, pointer, expected=expected))
                if len(found) != len(key.columns):
                    pointer = json_pointer("tables", name, "foreign_keys", i, "table")
                    n = len(key.columns)
                    message = f"table {key.table!r} has no primary key of {n} columns"
                    problems.append(Problem(message, pointer, expected="a member references"))
                shared = {c for other in keys for c in other.columns} & set(key.columns)
                if shared:
                    pointer = json_pointer("tables", name, "foreign_keys", i, "columns")
                    message = f"column {sorted(shared)[0]!r} is in two foreign keys"
                    problems.append(Problem(message, pointer, expected="each in one"))
                keys.append(replace(key, references=found))
            tables[name] = replace(table, foreign_keys=tuple(keys))
        if problems:
            raise SchemaError(*problems)
        return type(self)(tables)

    def check(self, columns: Mapping[str, Sequence[str]]) -> None:
        """Checks that the tables contain every column that the schema names.

        Args:
            columns: Column names of each table, by table name.

        Raises:
            SchemaError: A table or column does not exist; the error has a JSON pointer to each.
        """
        problems = []
        for name, table in self.tables.items():
            if name not in columns:
                pointer = json_pointer("tables", name)
                message = f"there is no table {name!r} in the data"
                problems.append(unknown_name(message, name, columns, pointer=pointer))
                continue
            named: list[tuple[str, tuple[str | int, ...]]] = [
                (column, ("primary_key", i)) for i, column in enumerate(table.primary_key)
            ]
            named += [
                (column, ("unique", i, j))
                for i, columns_ in enumerate(table.unique)
                for j, column in enumerate(columns_)
            ]
            if table.order is not None:
                named.append((table.order, ("order",)))
            if isinstance(table.entity, str):
                named.append((table.entity, ("entity",)))
            named += [(each["name"], ("columns", i)) for i, each in enumerate(table.columns)]
            problems += [
                _no_column(column, name, columns[name], ("tables", name, *steps))
                for column, steps in named
                if column not in columns[name]
            ]
            for i, key in enumerate(table.foreign_keys):
                pairs = ("columns", key.columns, name), ("references", key.references, key.table)
                for member, of_member, owner in pairs:
                    place = "tables", name, "foreign_keys", i, member
                    problems += [
                        _no_column(column, owner, columns[owner], (*place, j))
                        for j, column in enumerate(of_member)
                        if owner in columns and column not in columns[owner]
                    ]
        if problems:
            raise SchemaError(*problems)


def _no_column(
    column: str, table: str, names: Sequence[str], steps: Sequence[str | int]
) -> Problem:
    """Returns the problem that a table has no such column, with the most similar of `names` as a
    suggestion. `steps` lead to the column's name in the schema document."""
    message = f"table {table!r} has no column {column!r}"
    return unknown_name(message, column, names, pointer=json_pointer(*steps), column=column)


def _read_table(name: str, document: object, problems: list[Problem]) -> LinkedTable:
    """Reads one table of a JSON document, and adds its errors to `problems`."""
    if not isinstance(document, Mapping):
        message = f"table {name!r} is {document!r}"
        problems.append(Problem(message, json_pointer("tables", name), expected="an object"))
        return LinkedTable()
    for member in document:
        if member not in _MEMBERS:
            pointer, message = json_pointer("tables", name, member), f"unknown member {member!r}"
            problems.append(unknown_name(message, str(member), _MEMBERS, pointer=pointer))
    lists: dict[str, Sequence[Any]] = {}
    for member, what, expected in (
        ("foreign_keys", "the foreign keys are", "a list"),
        ("unique", "unique is", '[["email"], ["floor", "room"]]'),
        ("columns", "columns is", "a list"),
        ("rules", "rules is", "a list"),
    ):
        value = document.get(member, ())
        is_absent = value is None and member in ("columns", "rules")
        lists[member] = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
        if lists[member] is not value and not is_absent:
            pointer = json_pointer("tables", name, member)
            problems.append(Problem(f"{what} {value!r}", pointer, expected=expected))
    for member, kinds in (("order", str), ("keep", bool), ("entity", str | bool)):
        value = document.get(member)
        if value is not None and not isinstance(value, kinds):
            pointer = json_pointer("tables", name, member)
            expected = "true or false" if kinds is bool else "the name of a column"
            problems.append(Problem(f"{member} is {value!r}", pointer, expected=expected))
    for i, each in enumerate(lists["columns"]):
        if not isinstance(each, Mapping) or "name" not in each:
            pointer = json_pointer("tables", name, "columns", i)
            expected = '{"name": "age", "kind": "integer"}'
            problems.append(Problem(f"the column is {each!r}", pointer, expected=expected))
    primary = _names(document.get("primary_key", []), ("tables", name, "primary_key"), problems)
    if len(set(primary)) < len(primary):
        pointer = json_pointer("tables", name, "primary_key")
        problems.append(Problem("a column stands twice", pointer, expected="each once"))
    return LinkedTable(
        primary,
        tuple(
            _read_key(each, ("tables", name, "foreign_keys", i), problems)
            for i, each in enumerate(lists["foreign_keys"])
        ),
        document.get("order"),
        document.get("keep"),
        document.get("entity"),
        tuple(lists["columns"]),
        None if document.get("rules") is None else tuple(lists["rules"]),
        tuple(
            _names(each, ("tables", name, "unique", i), problems)
            for i, each in enumerate(lists["unique"])
        ),
    )


def _read_key(document: object, steps: Sequence[str | int], problems: list[Problem]) -> ForeignKey:
    """Reads one foreign key, and adds its errors to `problems`. `steps` are the members and indices
    that lead to it in the schema document."""
    expected = '{"columns": ["user_id"], "table": "users"}'
    if not isinstance(document, Mapping) or not {"columns", "table"} <= document.keys():
        message = f"the foreign key is {document!r}"
        problems.append(Problem(message, json_pointer(*steps), expected=expected))
        return ForeignKey((), "", ())
    for member in document:
        if member not in _KEY_MEMBERS:
            pointer, message = json_pointer(*steps, member), f"unknown member {member!r}"
            problems.append(unknown_name(message, str(member), _KEY_MEMBERS, pointer=pointer))
    columns = _names(document["columns"], (*steps, "columns"), problems)
    if not columns:
        pointer = json_pointer(*steps, "columns")
        problems.append(Problem("the foreign key has no columns", pointer, expected=expected))
    references = _names(document.get("references", []), (*steps, "references"), problems)
    if references and len(references) != len(columns):
        message = f"{len(columns)} columns refer to {len(references)}"
        problems.append(Problem(message, json_pointer(*steps, "references"), expected="as many"))
    return ForeignKey(columns, str(document["table"]), references)


def _names(value: object, steps: Sequence[str | int], problems: list[Problem]) -> tuple[str, ...]:
    """Reads column names from a list of strings or a single string. Any other value adds an error
    to `problems`."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence) and all(isinstance(name, str) for name in value):
        return tuple(value)
    message = f"{value!r} names no columns"
    problems.append(Problem(message, json_pointer(*steps), expected="a list of names of columns"))
    return ()
