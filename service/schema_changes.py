"""What requests say of a dataset's schema, one after the other, and what that changes in it.

What was said is kept apart from what was inferred: a patch changes what was said, and all the rest
is inferred anew.
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


def what_is_said(document: Document) -> Document:
    """What a schema document says: of a dropped column that it is dropped, and nothing else."""
    columns = [
        {"name": column["name"], "drop": True} if column.get("drop") else _given(column)
        for column in document.get("columns") or []
    ]
    others = {m: document.get(m) for m in ("rules", "find_rules", "separator", "constraints")}
    given = {member: value for member, value in others.items() if value is not None}
    return {"columns": columns} | given


def what_is_said_of_database(document: Document) -> Document:
    """What the schema document of a database says."""
    return {"tables": document.get("tables", {}), **document}


def patched(said: Document, patch: Document) -> Document:
    """The document that says what was said and what a merge patch says; the patch wins.

    Raises:
        RequestError: the patch has no columns by name.
    """
    if "tables" in said:
        of_database: Document = merge(said, patch)
        return of_database
    _check_columns(patch.get("columns"))
    by_name = {column["name"]: _without_name(column) for column in said.get("columns", ())}
    merged: Document = merge(said | {"columns": by_name}, patch)
    columns = [{"name": name, **column} for name, column in (merged.get("columns") or {}).items()]
    return merged | {"columns": columns}


def merge(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396): its members win, and null takes one away.

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
    """The error of a patched document, its places in the patch.

    What the patch does not say itself was said before, and does not go with it.
    """
    names = [column["name"] for column in document.get("columns", ())]
    return SchemaError(*(_pointed_at_patch(p, names, patch) for p in error.problems))


def _pointed_at_patch(problem: Problem, names: list[str], patch: Document) -> Problem:
    if problem.pointer is None:
        return problem
    steps = _steps(problem.pointer)
    if steps[0] == "columns" and len(steps) > 1:
        steps[1] = names[int(steps[1])]
        steps = steps[:2] if steps[2:] == ["name"] else steps
    place, found = "", cast(Any, patch)
    for number, step in enumerate(steps):
        if not isinstance(found, Mapping):  # a list, which a patch has whole
            place += json_pointer(*steps[number:])
            break
        if step not in found:
            said = "/".join(map(str, steps[number:]))
            message = f"{problem.message} ({said} was set before; null resets it)"
            return replace(problem, message=message, pointer=place or None)
        place, found = place + json_pointer(step), found[step]
    return replace(problem, pointer=place)


def _steps(pointer: str) -> list[str]:
    """What `json_pointer` made a pointer of, as texts."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def changes(before: Document, after: Document) -> SchemaChangesBody:
    """What is different in the second of two complete schema documents of one dataset."""
    if "tables" in after:
        return _changes_of_database(before, after)
    old = {column["name"]: column for column in before["columns"]}
    columns = {
        column["name"]: different
        for column in after["columns"]
        if (different := _different(old[column["name"]], column))
    }
    words = [_in_words(name, different) for name, different in columns.items()]
    lost_rules, added_rules = _rules_that_differ(before, after)
    words += [f"the rule {text} is added" for text in _rules_written(added_rules, after)]
    words += [f"the rule {text} is removed" for text in _rules_written(lost_rules, before)]
    separators = [document.get("separator", ",") for document in (before, after)]
    if separators[0] != separators[1]:
        words.append("separator is {1!r} (it was {0!r})".format(*separators))
    return SchemaChangesBody(
        columns=columns,
        rules=RuleChangesBody(added=added_rules, lost=lost_rules),
        summary=words or ["nothing changed"],
    )


def _changes_of_database(before: Document, after: Document) -> SchemaChangesBody:
    """What is different in keys and orders, in words."""
    old, new = before["tables"], after["tables"]
    words = [
        f"table {name!r}: {_member(member, ChangeBody(before=was, after=now))}"
        for name, table in new.items()
        for member in dict.fromkeys((*old[name], *table))
        if (was := old[name].get(member)) != (now := table.get(member))
    ]
    dirty = [document.get("dirty", "refuse") for document in (before, after)]
    words += [] if dirty[0] == dirty[1] else ["dirty is {1!r} (it was {0!r})".format(*dirty)]
    none = RuleChangesBody(added=[], lost=[])
    summary = words or ["nothing changed"]
    return SchemaChangesBody(columns={}, rules=none, summary=summary)


def _rules_that_differ(before: Document, after: Document) -> tuple[list[Document], list[Document]]:
    """Returns (rules of the first document alone, rules of the second alone); shares do not count.

    A rule of a column that is dropped now is left out: it may hold cells of the column.
    """
    old, new = (_by_what_it_says(document) for document in (before, after))
    dropped = {column["name"] for column in after["columns"] if column.get("drop")}
    read = TableSchema.from_json(before).rules or ()
    gone = {rule.text for rule in read if not dropped.isdisjoint(rule.columns)}
    lost = [rule for said, rule in old.items() if said not in new and rule["rule"] not in gone]
    return lost, [rule for said, rule in new.items() if said not in old]


def _by_what_it_says(document: Document) -> dict[str, Document]:
    rules = document.get("rules") or []
    return {
        json.dumps({m: v for m, v in rule.items() if m not in ("share", "source")}): rule
        for rule in rules
    }


def _rules_written(rules: list[Document], schema: Document) -> list[str]:
    """Rules as messages write them, with what becomes of one that is not just modelled."""
    read = TableSchema.from_json(schema | {"rules": rules}).rules or ()
    kept = {"soft": "", "hard": " (hard)", "off": " (off)"}
    return [f"{rule}{kept[rule.keep]}" for rule in read]


def _check_columns(columns: Any) -> None:
    """Lets columns by name pass, or none."""
    if columns is None:
        return
    if not isinstance(columns, Mapping):
        message, expected = "columns is not an object", '{"name of a column": {"drop": true}}'
        raise RequestError(Problem(message, "/columns", expected=expected))
    problems = []
    for name, column in columns.items():
        place = json_pointer("columns", name)
        if column is not None and not isinstance(column, Mapping):
            expected = 'an object such as {"drop": true}, or null'
            problems.append(
                Problem(
                    "the value of a column is not an object", place, column=name, expected=expected
                )
            )
        elif column is not None and "name" in column:
            message = "the key names the column; columns cannot be renamed"
            problems.append(Problem(message, f"{place}/name", column=name, expected="no name"))
    if problems:
        raise RequestError(*problems)


def _given(column: Document) -> Document:
    return {member: value for member, value in column.items() if value is not None}


def _without_name(column: Document) -> Document:
    return {member: value for member, value in column.items() if member != "name"}


def _different(old: Document, new: Document) -> dict[str, ChangeBody]:
    """The members that differ, their old values only where the column is not dropped now."""
    members = ["drop"] if new.get("drop") else dict.fromkeys((*old, *new))
    return {
        member: ChangeBody(before=old.get(member), after=new.get(member))
        for member in members
        if old.get(member) != new.get(member)
    }


def _in_words(name: str, different: Mapping[str, ChangeBody]) -> str:
    dropped = different.get("drop")
    if dropped is not None and dropped.after:
        return f"column {name!r} is dropped"
    members = [_member(m, change) for m, change in different.items() if m != "drop"]
    start = f"column {name!r}" if dropped is None else f"column {name!r} is no longer dropped"
    return f"{start}: {'; '.join(members)}"


def _member(member: str, change: ChangeBody) -> str:
    if change.before is None:
        return f"{member} is {_shown(change.after)}"
    if change.after is None:
        return f"{member} is reset (it was {_shown(change.before)})"
    return f"{member} is {_shown(change.after)} (it was {_shown(change.before)})"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."
