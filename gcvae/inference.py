"""The schema that a table's cells speak for, completed around what its user says.

A column is judged by its distinct cells: which of them mean "missing", what the others are, and how
they are spelled. Where the user has said it, the cells are checked against what was said instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc

from gcvae.cells import MARKERS, WEAK_MARKERS, Cells, TextColumn, cells_of, shortened
from gcvae.completion import Completion, complete_column
from gcvae.constraint_set import check_constraints
from gcvae.dates import infer_format
from gcvae.errors import Problem, SchemaError, TableError
from gcvae.levels import boolean_pair
from gcvae.notation import are_numbers, are_whole, numbers_of
from gcvae.schema import (
    Column,
    ColumnKind,
    Draft,
    InferredSchema,
    Missing,
    TableSchema,
    read_document,
    unknown_in_constraints,
)
from gcvae.source_columns import SourceColumns, Tell, tell_nobody
from gcvae.text_reasons import merged_numbers, why_text

FEW_VALUES = 20  # numeric columns with fewer distinct values are ordinal
IDENTIFIER_SHARE = 0.9  # distinct values per row from which on text is an identifier
IDENTIFIER_ROWS = 50  # fewer rows say nothing about uniqueness
KEY_SPREAD = 4  # whole numbers that never repeat in a range this many times their number are keys
YEARS = (1500, 2200)  # whole numbers in this range may be years, and are no keys
MANY_LEVELS = 1000
LEVEL_SHARE = 0.1  # distinct values per row from which on levels deserve a warning
MOST_LEVEL_CHARACTERS = 1_000  # longer text names no level; every model file would hold it
MOST_NAME_CHARACTERS = 500
_KEY_NAME = re.compile(
    r"(^|[_\W])(id|uuid|guid|key|idx|index|serial|row|rowid|row_?number)$", re.IGNORECASE
)
_CAMEL_KEY = re.compile(r"[a-z](Id|ID)$")

Mask = npt.NDArray[np.bool_]


def complete_schema(
    source: SourceColumns,
    given: Mapping[str, Any] | TableSchema | None,
    tell: Tell = tell_nobody,
) -> InferredSchema:
    """The schema of the table, and what its user should look at; see `infer_schema`."""
    _check_shape(source)
    document = given.to_json() if isinstance(given, TableSchema) else given
    drafts, constraints = read_document({} if document is None else document)
    problems = _unknown_names(drafts, source.names)
    problems += unknown_in_constraints(constraints, source.names)
    places = {draft["name"]: (f"/columns/{i}", draft) for i, draft in enumerate(drafts)}
    columns, warnings = [], []
    for i, name in enumerate(source.names):
        tell(i / len(source.names))
        pointer, draft = places.get(name, ("", {"name": name}))
        if draft.get("drop") and not source.has_cells(name):  # of Parquet: lists, bytes
            columns.append(Column(name, ColumnKind.IDENTIFIER, drop=True))
            continue
        judged = judge_column(source[name], draft, pointer, source.lines)
        stored = draft.get("parquet_type") or source.parquet_type(name)
        columns.append(replace(judged.column, parquet_type=stored))
        warnings += [f"column {name!r}: {warning}" for warning in judged.warnings]
        problems += judged.problems
    if problems:
        raise SchemaError(*problems)
    _check_modelled(columns)
    schema = TableSchema(tuple(columns), constraints)
    check_constraints(source, schema)
    return InferredSchema(schema, tuple(warnings))


@dataclass(frozen=True)
class Judged:
    """A completed column, what is odd about it, and where it contradicts what was given."""

    column: Column
    warnings: list[str]
    problems: list[Problem]


def judge_column(
    series: pd.Series[Any] | TextColumn, draft: Draft, pointer: str, lines: Any
) -> Judged:
    """The column of these cells, around what the draft says."""
    if not isinstance(series, TextColumn):
        draft = _with_categories(draft, series)
    cells = cells_of(series, lines, draft.get("datetime_format"))
    warnings: list[str] = []
    missing = _missing_cells(cells, draft)
    problems = _forbidden_missing(cells, missing, draft, pointer)
    if missing.sum() > 1:
        warnings.append(_markers_warning(cells, missing))
    present = cells.some(~missing)
    has_missing = bool(missing.any() or (cells.codes < 0).any())
    kind = draft.get("kind") or _kind_of_draft(draft, present)
    if kind is None:
        kind = _infer_kind(present, has_missing, warnings)
    if not draft.get("drop") and (kind.has_levels or kind is ColumnKind.CONSTANT):
        _refuse_long_levels(present)
    base = Column(
        name=cells.name,
        kind=kind,
        missing=_missing_of(cells, missing, has_missing, draft),
        drop=draft.get("drop", False),
    )
    work = Completion(base, present, has_missing, draft, pointer, problems, warnings)
    return Judged(complete_column(work), warnings, problems)


def _check_shape(source: SourceColumns) -> None:
    names = list(source.names)
    if not names:
        raise TableError(Problem("the table has no columns", expected="at least one column"))
    if not len(source):
        raise TableError(Problem("the table has no rows", expected="at least one row"))
    for name in names:
        if not isinstance(name, str):
            raise TableError(Problem(f"the column name {name!r} is no text", expected="text"))
        if len(name) > MOST_NAME_CHARACTERS:
            message = f"the column name {shortened(name)} has {len(name)} characters"
            raise TableError(Problem(message, expected=f"at most {MOST_NAME_CHARACTERS}"))
        if names.count(name) > 1:
            raise TableError(Problem("the name is used twice", column=name, expected="one column"))


def _refuse_long_levels(cells: Cells) -> None:
    lengths = pc.utf8_length(cells.texts).to_numpy(zero_copy_only=False)
    long = np.asarray(lengths > MOST_LEVEL_CHARACTERS, dtype=bool)
    if long.any():
        message = f"a level has at most {MOST_LEVEL_CHARACTERS} characters; longer is {{}}"
        expected = "shorter text, kind identifier, or drop"
        raise TableError(cells.problem(long, message, expected=expected))


def _check_modelled(columns: list[Column]) -> None:
    if any(column.is_modelled for column in columns):
        return
    raise TableError(
        Problem(
            "no column is left to model: every column is constant, an identifier or dropped",
            expected="at least one column whose values differ",
        )
    )


def _unknown_names(drafts: list[Draft], names: list[str]) -> list[Problem]:
    expected = "one of " + ", ".join(map(str, names[:20]))
    return [
        Problem("the table has no such column", f"/columns/{i}/name", column=draft["name"],
                expected=expected)
        for i, draft in enumerate(drafts)
        if draft["name"] not in names
    ]  # fmt: skip


def _with_categories(draft: Draft, series: pd.Series[Any]) -> Draft:
    """The draft with the levels and the order that a categorical dtype holds."""
    dtype = series.dtype
    if not isinstance(dtype, pd.CategoricalDtype) or "kind" in draft or not len(dtype.categories):
        return draft
    kind = ColumnKind.ORDINAL if dtype.ordered else ColumnKind.CATEGORICAL
    categories = dtype.categories.tolist()
    if not all(isinstance(level, str | int | float) for level in categories):
        return draft
    return {"kind": kind, "levels": tuple(categories)} | draft


# Missing cells


def _missing_cells(cells: Cells, draft: Draft) -> Mask:
    """True for each distinct text that means "missing"."""
    given = draft.get("missing", {}).get("markers")
    if given is not None:
        return cells.are_listed(given)
    if cells.source != "text":
        return np.zeros(len(cells.texts), dtype=bool)
    listed = cells.are_listed(tuple(x for x in draft.get("levels", ()) if isinstance(x, str)))
    strong = cells.are_markers(MARKERS) & ~listed
    weak = cells.are_markers(WEAK_MARKERS) & ~strong & ~listed
    rest = cells.some(~strong & ~weak)
    return strong | weak if weak.any() and _is_strict(rest, draft) else strong


def _is_strict(cells: Cells, draft: Draft) -> bool:
    """True where the cells are of a kind in which no word can stand."""
    kind = draft.get("kind")
    if kind is not None:
        return bool(kind.is_real or kind is ColumnKind.BOOLEAN)
    if not len(cells.texts):
        return False
    return bool(
        are_numbers(cells.stripped).all() or boolean_pair(cells.texts) or infer_format(cells.texts)
    )


def _markers_warning(cells: Cells, missing: Mask) -> str:
    texts = [cells.texts[int(i)].as_py() for i in np.flatnonzero(missing)]
    most_frequent = cells.texts[int(np.where(missing, cells.counts, -1).argmax())].as_py()
    return (
        f"has {len(texts)} texts that mean missing, {', '.join(map(repr, texts[:5]))}: they are one"
        f" to the model, and rows that it draws have the most frequent, {most_frequent!r}"
    )


def _missing_of(cells: Cells, missing: Mask, has_missing: bool, draft: Draft) -> Missing:
    """The markers by falling frequency; one that was given but does not occur comes last."""
    given = draft.get("missing", {})
    order = np.argsort(-cells.counts, kind="stable")
    found = [cells.texts[int(i)].as_py() for i in order[missing[order]]]
    found += [marker for marker in given.get("markers", ()) if marker not in found]
    return Missing(given.get("allowed", has_missing), tuple(found))


def _forbidden_missing(cells: Cells, missing: Mask, draft: Draft, pointer: str) -> list[Problem]:
    if draft.get("missing", {}).get("allowed", True):
        return []
    place = f"{pointer}/missing/allowed"
    message = "missing cells are not allowed, but the cell is {}"
    if missing.any():
        return [cells.problem(missing, message, pointer=place, expected="allowed: true")]
    if (cells.codes < 0).any():
        row = int(np.argmax(cells.codes < 0))
        return [
            cells.problem_at(row, message.format("blank"), pointer=place, expected="allowed: true")
        ]
    return []


# Kinds


def _kind_of_draft(draft: Draft, cells: Cells) -> ColumnKind | None:
    """The kind that the other given fields ask for."""
    if "datetime_format" in draft:
        return ColumnKind.DATETIME
    if "levels" in draft:
        return _kind_of_levels(draft["levels"])
    if {"minimum", "maximum"} & set(draft) and len(cells.texts):
        numbers = cells.stripped if are_numbers(cells.stripped).all() else None
        if numbers is not None:
            return ColumnKind.INTEGER if are_whole(numbers).all() else ColumnKind.CONTINUOUS
    return None


def _kind_of_levels(levels: tuple[Any, ...]) -> ColumnKind:
    if levels and all(isinstance(level, bool) for level in levels):
        return ColumnKind.BOOLEAN
    numeric = levels and all(isinstance(level, int | float) for level in levels)
    return ColumnKind.ORDINAL if numeric else ColumnKind.CATEGORICAL


def _infer_kind(cells: Cells, has_missing: bool, warnings: list[str]) -> ColumnKind:
    if len(cells.texts) == 0:
        warnings.append("has no values; it is taken as constant")
        return ColumnKind.CONSTANT
    if len(cells.texts) == 1 and not has_missing:
        return ColumnKind.CONSTANT
    if cells.source == "boolean":
        return ColumnKind.BOOLEAN
    if cells.source == "datetime":
        return ColumnKind.DATETIME
    numbers = are_numbers(cells.stripped)
    if numbers.all() and not _are_days(cells):
        return _numeric_kind(cells, has_missing, warnings)
    return _text_kind(cells, numbers, warnings)


def _are_days(cells: Cells) -> bool:
    """True for texts of eight digits that are all dates, such as 20240131."""
    if cells.source != "text" or len(cells.texts) < 10:
        return False
    found = infer_format(cells.texts)
    return found is not None and found[0] == "%Y%m%d"


def _numeric_kind(cells: Cells, has_missing: bool, warnings: list[str]) -> ColumnKind:
    values = numbers_of(cells.stripped)
    n_distinct = len(np.unique(values))
    if n_distinct == 1 and merged_numbers(cells):
        warnings.append(
            "is taken as text: its numbers differ only beyond the 15 to 17 digits that a number"
            " keeps; take their common part away to have them modelled as numbers"
        )
        return _text_kind(cells, are_numbers(cells.stripped), warnings)
    if n_distinct == 1 and not has_missing:
        return ColumnKind.CONSTANT
    whole = _is_whole(cells, values, has_missing)
    if whole and _are_keys(cells, values):
        warnings.append(_IDENTIFIER_WARNING)
        return ColumnKind.IDENTIFIER
    if n_distinct < FEW_VALUES:
        return ColumnKind.ORDINAL
    return ColumnKind.INTEGER if whole else ColumnKind.CONTINUOUS


_IDENTIFIER_WARNING = (
    "is taken as an identifier: it is not modelled, and fresh values are generated for it"
)


def _is_whole(cells: Cells, values: npt.NDArray[Any], has_missing: bool) -> bool:
    """True for whole numbers; floats without missing cells were meant to be floats."""
    if cells.source == "float" and not has_missing:
        return False
    if are_whole(cells.stripped).all():
        return True
    zero_decimals = pc.match_substring_regex(cells.stripped, r"^[+-]?[0-9]+\.0+$")
    return bool(pc.all(zero_decimals).as_py() and (np.abs(values) < 2**53).all())


def _are_keys(cells: Cells, values: npt.NDArray[Any]) -> bool:
    """True for whole numbers that name rows: nearly all distinct, and dense or named like a key."""
    n_rows = int(cells.counts.sum())
    if n_rows < IDENTIFIER_ROWS or len(cells.texts) < IDENTIFIER_SHARE * n_rows:
        return False
    if _KEY_NAME.search(cells.name) or _CAMEL_KEY.search(cells.name):
        return True
    low, high = (float(limit) for limit in (values.min(), values.max()))
    if YEARS[0] <= low and high <= YEARS[1]:
        return False
    return len(cells.texts) == n_rows and bool(high - low < KEY_SPREAD * n_rows)


def _text_kind(cells: Cells, numbers: Mask, warnings: list[str]) -> ColumnKind:
    if boolean_pair(cells.texts) is not None:
        return ColumnKind.BOOLEAN
    if infer_format(cells.texts) is not None:
        return ColumnKind.DATETIME
    n_rows, n_levels = int(cells.counts.sum()), len(cells.texts)
    warnings += why_text(cells, numbers)
    if n_rows >= IDENTIFIER_ROWS and n_levels >= IDENTIFIER_SHARE * n_rows:
        warnings.append(_IDENTIFIER_WARNING)
        return ColumnKind.IDENTIFIER
    if n_levels > MANY_LEVELS or (n_levels > FEW_VALUES and n_levels > LEVEL_SHARE * n_rows):
        warnings.append(
            f"has {n_levels} levels in {n_rows} rows; declare it an identifier or drop it"
            " if its texts must not come out"
        )
    return ColumnKind.CATEGORICAL
