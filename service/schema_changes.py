"""Changes of a dataset's schema by requests, and descriptions of what changed.

A schema consists of members that users have specified, which are also stored separately, and of
members inferred from the table. A patch changes the specified members; the others are inferred
again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from catalog.records import Document
from gcvae.errors import Problem, SchemaError, json_pointer
from gcvae.schema.columns import TableSchema
from service.bodies import ChangeBody, RuleChangesBody, SchemaChangesBody
from service.errors import RequestError

_MOST_CHARACTERS = 60
_MOST_LISTED = 5


def stated_schema(document: Document) -> Document:
    """Returns the members that a user has specified in the schema of a request.

    They are stored in addition to the complete schema. Members that are null are left out; of
    dropped columns, only `name` and `drop` are kept.
    """
    columns = []
    for column in document.get("columns") or []:
        stated = {member: value for member, value in column.items() if value is not None}
        columns.append({"name": column["name"], "drop": True} if column.get("drop") else stated)
    others = {m: document.get(m) for m in ("rules", "find_rules", "separator")}
    given = {member: value for member, value in others.items() if value is not None}
    return {"columns": columns} | given


def stated_database_schema(document: Document) -> Document:
    """Returns the database schema that a user has specified, with empty `tables` if it has none."""
    return {"tables": document.get("tables", {}), **document}


def patched(stated: Document, patch: Document) -> Document:
    """Returns the schema members that users have specified, after applying a JSON merge patch.

    Args:
        stated: Members that users have specified so far.
        patch: Changes, with `columns` as an object by column name; null removes a member.

    Raises:
        RequestError: `columns` is not an object by column name.
    """
    if "tables" in stated:
        of_database: Document = merge(stated, patch)
        return of_database
    _check_columns(patch.get("columns"))
    by_name = {
        column["name"]: {member: value for member, value in column.items() if member != "name"}
        for column in stated.get("columns", ())
    }
    merged: Document = merge(stated | {"columns": by_name}, patch)
    columns = [{"name": name, **column} for name, column in (merged.get("columns") or {}).items()]
    return merged | {"columns": columns}


def merge(target: Any, patch: Any) -> Any:
    """Applies a JSON merge patch (RFC 7396), in which null removes a member. Returns the result.

    >>> merge({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"c": [4]}})
    {'b': {'c': [4], 'd': 3}}
    """
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def pointed_at_patch(error: SchemaError, document: Document, patch: Document) -> SchemaError:
    """Returns an error about a patched schema with its pointers changed to point into the patch.

    An error about a member that is not in the patch, because an earlier request set it, points to
    the closest enclosing member of the patch.

    Args:
        document: The patched schema, to which the pointers of `error` refer.
        patch: The patch, which is the body of the request.
    """
    names = [column["name"] for column in document.get("columns", ())]
    return SchemaError(*(_pointed_at_patch(p, names, patch) for p in error.problems))


def _pointed_at_patch(problem: Problem, names: list[str], patch: Document) -> Problem:
    """Makes the pointer of a problem in the schema point into the patch. The schema's pointers
    contain the index of a column in `names`, the patch's pointers its name."""
    if problem.pointer is None:
        return problem
    parts = problem.pointer.split("/")[1:]
    steps = [part.replace("~1", "/").replace("~0", "~") for part in parts]
    if steps[0] == "columns" and len(steps) > 1:
        steps[1] = names[int(steps[1])]
        steps = steps[:2] if steps[2:] == ["name"] else steps
    pointer, found = "", cast(Any, patch)
    for number, step in enumerate(steps):
        if not isinstance(found, Mapping):  # a patch replaces lists as a whole
            pointer += json_pointer(*steps[number:])
            break
        if step not in found:
            stated = "/".join(map(str, steps[number:]))
            message = f"{problem.message} ({stated} was set before; null resets it)"
            return replace(problem, message=message, pointer=pointer or None)
        pointer, found = pointer + json_pointer(step), found[step]
    return replace(problem, pointer=pointer)


def changes(before: Document, after: Document) -> SchemaChangesBody:
    """Returns the differences between a dataset's JSON schemas before and after a request."""
    if "tables" in after:
        return _changes_of_database(before, after)
    old = {column["name"]: column for column in before["columns"]}
    columns = {
        column["name"]: different
        for column in after["columns"]
        if (different := _different(old[column["name"]], column))
    }
    words = [_described_change(name, different) for name, different in columns.items()]
    lost_rules, added_rules = _rules_that_differ(before, after)
    words += [f"the rule {text} is added" for text in _described_rules(added_rules, after)]
    words += [f"the rule {text} is removed" for text in _described_rules(lost_rules, before)]
    separators = [document.get("separator", ",") for document in (before, after)]
    if separators[0] != separators[1]:
        words.append("separator is {1!r} (it was {0!r})".format(*separators))
    return SchemaChangesBody(
        columns=columns,
        rules=RuleChangesBody(added=added_rules, lost=lost_rules),
        summary=words or ["nothing changed"],
    )


def _changes_of_database(before: Document, after: Document) -> SchemaChangesBody:
    old, new = before["tables"], after["tables"]
    words = [
        f"table {name!r}: {_described_member(member, ChangeBody(before=was, after=now))}"
        for name, table in new.items()
        for member in dict.fromkeys((*old[name], *table))
        if (was := old[name].get(member)) != (now := table.get(member))
    ]
    name = "invalid_references"
    was, now = (document.get(name, "refuse") for document in (before, after))
    words += [] if was == now else [f"{name} is {now!r} (it was {was!r})"]
    none = RuleChangesBody(added=[], lost=[])
    summary = words or ["nothing changed"]
    return SchemaChangesBody(columns={}, rules=none, summary=summary)


def _rules_that_differ(before: Document, after: Document) -> tuple[list[Document], list[Document]]:
    """Returns (removed rules, added rules). Removed rules about a dropped column are left out,
    because they may contain its values."""
    old, new = (_by_statement(document) for document in (before, after))
    dropped = {column["name"] for column in after["columns"] if column.get("drop")}
    read = TableSchema.from_json(before).rules or ()
    gone = {rule.text for rule in read if not dropped.isdisjoint(rule.columns)}
    lost = [rule for stated, rule in old.items() if stated not in new and rule["rule"] not in gone]
    return lost, [rule for stated, rule in new.items() if stated not in old]


def _by_statement(document: Document) -> dict[str, Document]:
    """Returns the rules by their JSON text, from which `share` and `source` are left out."""
    rules = document.get("rules") or []
    return {
        json.dumps({m: v for m, v in rule.items() if m not in ("share", "source")}): rule
        for rule in rules
    }


def _described_rules(rules: list[Document], schema: Document) -> list[str]:
    read = TableSchema.from_json(schema | {"rules": rules}).rules or ()
    kept = {"soft": "", "hard": " (hard)", "off": " (off)"}
    return [f"{rule}{kept[rule.keep]}" for rule in read]


def _check_columns(columns: Any) -> None:
    """Raises RequestError unless `columns` of a patch is null or an object by column name. Each
    value must be null or an object, without `name`."""
    if columns is None:
        return
    if not isinstance(columns, Mapping):
        message, expected = "columns is not an object", '{"name of a column": {"drop": true}}'
        raise RequestError(Problem(message, "/columns", expected=expected))
    problems = []
    for name, column in columns.items():
        pointer = json_pointer("columns", name)
        if column is not None and not isinstance(column, Mapping):
            expected = 'an object such as {"drop": true}, or null'
            problems.append(
                Problem(
                    "the value of a column is not an object",
                    pointer,
                    column=name,
                    expected=expected,
                )
            )
        elif column is not None and "name" in column:
            message = "the key names the column; columns cannot be renamed"
            problems.append(Problem(message, f"{pointer}/name", column=name, expected="no name"))
    if problems:
        raise RequestError(*problems)


def _different(old: Document, new: Document) -> dict[str, ChangeBody]:
    """Returns the changed members of a column. If it is now dropped, only `drop` is compared."""
    members = ["drop"] if new.get("drop") else dict.fromkeys((*old, *new))
    return {
        member: ChangeBody(before=_cut(old.get(member)), after=_cut(new.get(member)))
        for member in members
        if old.get(member) != new.get(member)
    }


def _cut(value: Any) -> Any:
    """Shortens a long list to its first elements and a text with the number of further ones."""
    n_more = len(value) - _MOST_LISTED if isinstance(value, list) else 0
    return [*value[:_MOST_LISTED], f"and {n_more:,} more"] if n_more > 0 else value


def _described_change(name: str, different: Mapping[str, ChangeBody]) -> str:
    dropped = different.get("drop")
    if dropped is not None and dropped.after:
        return f"column {name!r} is dropped"
    members = [_described_member(m, change) for m, change in different.items() if m != "drop"]
    start = f"column {name!r}" if dropped is None else f"column {name!r} is no longer dropped"
    return f"{start}: {'; '.join(members)}"


def _described_member(member: str, change: ChangeBody) -> str:
    if change.before is None:
        return f"{member} is {_shown(change.after)}"
    if change.after is None:
        return f"{member} is reset (it was {_shown(change.before)})"
    return f"{member} is {_shown(change.after)} (it was {_shown(change.before)})"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."
