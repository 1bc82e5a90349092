"""Infers the schema of a table from its cells, and checks the properties that the user specified.

For each column, the distinct cells decide which of them mean "missing", what kind the others are,
and how they are written. Properties that the user specified are not inferred; the cells are checked
against them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc

from gcvae.arrays import Mask
from gcvae.cells.data_frames import refuse_empty
from gcvae.cells.distinct_cells import (
    MARKER_WORDS,
    MARKERS,
    WEAK_MARKERS,
    Cells,
    TextColumn,
    cells_of,
    shortened,
)
from gcvae.cells.from_arrow import plain_series
from gcvae.cells.levels import boolean_pair
from gcvae.errors import Problem, SchemaError, TableError
from gcvae.files.header_lines import MOST_NAME_CHARACTERS
from gcvae.files.source_columns import SourceColumns, source_columns
from gcvae.files.table_reader import Rows
from gcvae.files.typed_columns import GrowingColumns, KnownCells, growing_columns
from gcvae.profiling.column_fields import Completion, complete_column
from gcvae.profiling.entity_keys import recurring_keys
from gcvae.profiling.key_columns import (
    are_phrases,
    are_row_identifiers,
    is_row_counter,
    key_or_quantity,
)
from gcvae.profiling.personal_columns import find_personal, is_birth_date_name, personal_warning
from gcvae.profiling.table_notes import TableNotes
from gcvae.profiling.table_rules import refuse_misfits, search_notes, shown_finding, with_rules
from gcvae.profiling.warnings import (
    IDENTIFIER_WARNING,
    PHRASES_WARNING,
    ROW_COUNTER_WARNING,
    UNDECIDED_WARNING,
    column_notes,
    markers_warning,
    reasons_for_text,
    recurrence_warning,
    separator_warning,
    words_warning,
)
from gcvae.progress import Report, report_to_nobody
from gcvae.schema.columns import (
    Column,
    Draft,
    Missing,
    TableSchema,
    personal_problems,
    read_document,
)
from gcvae.schema.inferred_schema import InferredSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.personal import PersonalKind
from gcvae.schema.rule_documents import unknown_in_rules
from gcvae.schema.suggestions import unknown_names
from gcvae.spelling.format_inference import InferredFormat, find_format, may_be_grouped
from gcvae.spelling.forms import NumberFormat
from gcvae.spelling.number_formats import completed_format, example
from gcvae.spelling.number_text import are_whole

FEW_VALUES = 20  # numeric columns with fewer distinct values are ordinal
ROWS_PER_LEVEL = 2  # minimum mean number of rows per value of such a column, to protect single rows
MANY_LEVELS = 1000  # categorical columns with more levels get a warning
LEVEL_SHARE = 0.1  # and so do those with over FEW_VALUES levels and more levels per row than this
MOST_LEVEL_CHARACTERS = 1_000  # longer strings are refused as levels: model files contain levels


def infer_schema(
    rows: Rows, given: Mapping[str, Any] | TableSchema | None = None, *, rules: bool = True
) -> InferredSchema:
    """Infers the schema of a table from all its rows, except what the user specified in `given`.

    Args:
        rows: Data frame of pandas, polars or Arrow; or a file, a path or a TableReader, which is
            read one column at a time.
        given: Schema, or JSON document of one, which may be incomplete; if None, everything is
            inferred.
        rules: Whether to infer rules between columns, and to count the rows that satisfy the rules
            in `given`.

    Raises:
        SchemaError: `given` is malformed or contradicts the table, or rows violate hard rules.
        TableError: The table has no rows, no columns, or only constants.
    """
    with source_columns(rows) as source:
        return complete_schema(source, given, rules=rules)


def complete_schema(
    source: SourceColumns,
    given: Mapping[str, Any] | TableSchema | None,
    report: Report = report_to_nobody,
    *,
    rules: bool = True,
) -> InferredSchema:
    """Infers the schema of a table of which one column is read at a time.

    Args:
        given: Schema, or JSON document of one, which may be incomplete; if None, everything is
            inferred.
        report: Function that receives the fraction of the columns that is done.
        rules: Whether to infer rules between columns, and to count the rows that satisfy the rules
            in `given`.

    Raises:
        SchemaError: `given` is malformed or contradicts the table, or rows violate hard rules.
        TableError: The table has no rows, no columns, or only constants.
    """
    _check_shape(source)
    document = given.to_json() if isinstance(given, TableSchema) else given
    document = {} if document is None else document
    drafts, given_rules = read_document(document)
    problems = _unknown_names(drafts, source.names)
    problems += unknown_in_rules(given_rules or (), source.names)
    places = {draft["name"]: (f"/columns/{i}", draft) for i, draft in enumerate(drafts)}
    notes = TableNotes(source)
    with growing_columns(source) if rules else nullcontext() as typed:
        columns, warnings, found = _infer_columns(source, places, notes, typed, report)
        if problems + found:
            raise SchemaError(*problems, *found)
        _check_modelled(columns, notes, len(source))
        schema = TableSchema(
            tuple(columns),
            separator=document.get("separator") or source.separator,
            rules=given_rules,
            find_rules=bool(document.get("find_rules")),
        )
        refuse_misfits(schema)
        shown: tuple[dict[str, Any], ...] = ()
        if typed is not None:
            warnings += search_notes(schema)
            schema, findings = with_rules(schema, typed.table(schema), source.line_of)
            shown = tuple(shown_finding(finding, source.line_of) for finding in findings)
    return InferredSchema(schema, (*notes.sentences(), *warnings), shown)


def _infer_columns(
    source: SourceColumns,
    places: Mapping[str, tuple[str, Draft]],
    notes: TableNotes,
    typed: GrowingColumns | None,
    report: Report,
) -> tuple[list[Column], list[str], list[Problem]]:
    """Infers all columns. Returns (columns, warnings, problems of the user's schema). `places` is
    the user's schema: {column name: (JSON pointer of the column, properties of the column)}."""
    columns, warnings, problems = [], list[str](), list[Problem]()
    decisive = {"kind", "drop", "levels", "personal"}
    keys = recurring_keys(
        source, {name for name, (_, draft) in places.items() if decisive & set(draft)}
    )
    for i, name in enumerate(source.names):
        report(i / len(source.names))
        pointer, draft = places.get(name, ("", {"name": name}))
        if name in keys:
            draft = {"kind": ColumnKind.IDENTIFIER} | draft
            warnings.append(f"column {name!r}: {recurrence_warning(keys[name])}")
        if draft.get("drop"):  # cells of dropped columns are not read
            columns.append(Column(name, ColumnKind.IDENTIFIER, drop=True))
            continue
        inferred = infer_column(source[name], draft, pointer, source)
        if inferred.is_row_counter:
            columns.append(Column(name, ColumnKind.IDENTIFIER, drop=True))
            warnings.append(f"column {name!r}: {ROW_COUNTER_WARNING}")
            continue
        notes.add_column(inferred.cells, inferred.present, inferred.column)
        columns.append(_with_types(inferred.column, draft, source))
        warnings += [f"column {name!r}: {warning}" for warning in inferred.warnings]
        problems += inferred.problems
        if typed is not None and not problems:
            typed.add(columns[-1], KnownCells(inferred.cells, inferred.missing, inferred.present))
    return columns, warnings, problems


def _with_types(column: Column, draft: Draft, source: SourceColumns) -> Column:
    """Returns the column with its types in data frames and Parquet files, as the user specified or
    as in the source."""
    own, parquet_type = source.types(column)
    dtype = draft.get("dtype") or own
    is_other = own is not None and dtype != own
    parquet_type = draft.get("parquet_type") or (None if is_other else parquet_type)
    return replace(column, parquet_type=parquet_type, dtype=dtype)


class InferredColumn(NamedTuple):
    """Result of schema inference for one column.

    `cells` are all cells of the column, U of them distinct. `missing` is a mask of the distinct
    cells that mean "missing", of shape (U,); `present` are the cells that do not.
    `is_row_counter` says whether the column has no name and only numbers the rows.
    """

    column: Column
    cells: Cells
    missing: Mask
    present: Cells
    warnings: list[str]
    problems: list[Problem]
    is_row_counter: bool = False


def infer_column(
    series: pd.Series[Any] | TextColumn, draft: Draft, pointer: str, source: SourceColumns
) -> InferredColumn:
    """Infers the properties of a column that the user did not specify, and checks the others.

    Args:
        series: Cells of the column.
        draft: Properties that the user specified; at least the name.
        pointer: JSON pointer of these properties in the user's schema; "" if there are none.
        source: The table.
    """
    if not isinstance(series, TextColumn):
        draft = _with_categories(draft, plain_series(series))
    cells = cells_of(series, source.lines, draft.get("datetime_format"))
    warnings: list[str] = []
    missing = _missing_cells(cells, draft)
    problems = _forbidden_missing(cells, missing, draft, pointer)
    if missing.sum() > 1:
        warnings.append(markers_warning(cells, missing))
    words = missing & cells.are_markers(MARKER_WORDS)
    if words.any() and "markers" not in draft.get("missing", {}):
        warnings.append(words_warning(cells, words))
    present = cells.select(~missing)
    personal = find_personal(present, draft, source.names)
    if personal is not None and personal.kind.is_made_up:
        draft = {"kind": ColumnKind.IDENTIFIER} | draft
        warnings.append(personal_warning(personal))
    has_missing = bool(missing.any() or cells.n_blank)
    found = _detected_format(present, draft)
    if unread := _unread_numbers(present, found, draft, pointer):
        column = Column(cells.name, ColumnKind.CONTINUOUS)
        return InferredColumn(
            column, cells, missing, cells.select(~missing), warnings, problems + unread
        )
    if (number_format := _number_format(found, draft)) != present.number_format:
        present = replace(present, number_format=number_format)
    kind = draft.get("kind") or _kind_of_draft(draft, present)
    if kind is None:
        kind = _infer_kind(present, has_missing, draft, found, warnings)
    personal_kind = draft.get("personal", personal and personal.kind)
    if personal_kind is None and kind is ColumnKind.DATETIME and is_birth_date_name(cells.name):
        personal_kind = PersonalKind.BIRTH_DATE
    warnings += _separator_warnings(present, kind, draft, found)
    if "levels" in kind.members:
        _refuse_long_levels(present)
    base = Column(
        name=cells.name,
        kind=kind,
        missing=_missing_description(cells, missing, has_missing, draft),
        personal=personal_kind,
    )
    problems += personal_problems(
        {"kind": kind, "personal": personal_kind, "name": cells.name}, pointer
    )
    work = Completion(base, present, has_missing, draft, pointer, problems, warnings)
    column = complete_column(work)
    if not problems:
        warnings += column_notes(present, column, draft)
    counts_rows = not has_missing and set(draft) == {"name"} and is_row_counter(cells)
    return InferredColumn(column, cells, missing, present, warnings, problems, counts_rows)


def _check_shape(source: SourceColumns) -> None:
    names = list(source.names)
    refuse_empty(names, len(source))
    for number, name in enumerate(names, 1):
        if len(name) > MOST_NAME_CHARACTERS:
            message = f"the name of column {number}, {shortened(name)}, has {len(name)} characters"
            raise TableError(Problem(message, expected=f"at most {MOST_NAME_CHARACTERS}"))


def _refuse_long_levels(cells: Cells) -> None:
    lengths = pc.utf8_length(cells.texts).to_numpy(zero_copy_only=False)
    long = np.asarray(lengths > MOST_LEVEL_CHARACTERS, dtype=bool)
    if long.any():
        message = f"a level has at most {MOST_LEVEL_CHARACTERS} characters; longer is {{}}"
        expected = "shorter text, kind identifier, or drop"
        raise TableError(cells.problem(long, message, expected=expected))


def _check_modelled(columns: list[Column], notes: TableNotes, n_rows: int) -> None:
    if any(column.is_modelled for column in columns):
        return
    expected = "more rows: the table has one" if n_rows == 1 else "at least one column that varies"
    raise TableError(
        Problem(
            "no column is left to model: every column is constant, an identifier or dropped",
            expected=notes.hidden_separator or expected,
        )
    )


def _unknown_names(drafts: list[Draft], names: list[str]) -> list[Problem]:
    places = [
        (draft["name"], {"pointer": f"/columns/{i}/name", "column": draft["name"]})
        for i, draft in enumerate(drafts)
        if draft["name"] not in names
    ]
    return unknown_names("the table has no such column", places, list(map(str, names)))


def _with_categories(draft: Draft, series: pd.Series[Any]) -> Draft:
    """Adds the levels and the order of a pandas categorical dtype to the user's properties."""
    dtype = series.dtype
    if not isinstance(dtype, pd.CategoricalDtype) or "kind" in draft or not len(dtype.categories):
        return draft
    kind = ColumnKind.ORDINAL if dtype.ordered else ColumnKind.CATEGORICAL
    categories = dtype.categories.tolist()
    if all(isinstance(level, bool) for level in categories):
        return draft  # booleans have their own kind
    if all(isinstance(level, pd.Interval) for level in categories):
        categories = [str(level) for level in categories]
    if not all(isinstance(level, str | int | float) for level in categories):
        return draft
    return {"kind": kind, "levels": tuple(categories)} | draft


# Missing cells


def _missing_cells(cells: Cells, draft: Draft) -> Mask:
    """Returns a mask of those of the U distinct cells that mean "missing". Shape: (U,)."""
    given = draft.get("missing", {}).get("markers")
    if given is not None:
        return cells.are_listed(given)
    if cells.source != "text":
        return np.zeros(len(cells.texts), dtype=bool)
    listed = cells.are_listed(tuple(x for x in draft.get("levels", ()) if isinstance(x, str)))
    strong = cells.are_markers(MARKERS) & ~listed
    weak = cells.are_markers(WEAK_MARKERS) & ~strong & ~listed
    words = cells.are_markers(MARKER_WORDS) & ~strong & ~listed
    if words.any():
        rest = cells.select(~strong & ~weak & ~words)
        if len(rest.texts) >= FEW_VALUES and _is_strict(rest, draft):
            return strong | weak | words
    rest = cells.select(~strong & ~weak)
    return strong | weak if weak.any() and _is_strict(rest, draft) else strong


def _is_strict(cells: Cells, draft: Draft) -> bool:
    """Returns whether a word such as "unknown" cannot be a value of the column, because the user
    specified a kind without words, or because all `cells` are numbers, dates or booleans."""
    kind = draft.get("kind")
    if kind is not None:
        return bool(kind.is_strict)
    if not len(cells.texts):
        return False
    if cells.all_numbers or boolean_pair(cells.texts) or cells.inferred_date_format:
        return True
    found = _detected_format(cells, draft)
    return found is not None and bool(found.fits.all())


def _missing_description(cells: Cells, missing: Mask, has_missing: bool, draft: Draft) -> Missing:
    """Describes missing cells for a schema: the strings that mean "missing", the most frequent
    first."""
    given = draft.get("missing", {})
    places = np.flatnonzero(missing)
    order = places[np.argsort(-cells.counts[places], kind="stable")]
    found = cells.texts.take(order).to_pylist()
    markers = tuple(dict.fromkeys([*found, *given.get("markers", ())]))
    return Missing(given.get("allowed", has_missing), markers, given.get("is_value", False))


def _forbidden_missing(cells: Cells, missing: Mask, draft: Draft, pointer: str) -> list[Problem]:
    if draft.get("missing", {}).get("allowed", True):
        return []
    place = {"pointer": f"{pointer}/missing/allowed", "expected": "allowed: true"}
    message = "missing cells are not allowed, but the cell is {}"
    if missing.any():
        return [cells.problem(missing, message, **place)]
    if cells.n_blank:
        row = int(np.argmax(cells.codes < 0))
        return [cells.problem_at(row, message.format("blank"), **place)]
    return []


# Number formats


def _detected_format(cells: Cells, draft: Draft) -> InferredFormat | None:
    """Returns the number format that fits most cells of a text column; None if the column is not
    numeric, or if its numbers are plain, such as 12.5."""
    kind, given = draft.get("kind"), draft.get("number_format")
    if kind is None and ("datetime_format" in draft or "levels" in draft):
        kind = _kind_of_draft(draft, cells)
    if kind is not None and not kind.may_be_numbers:
        return None
    if cells.source != "text" or cells.has_objects or not len(cells.texts):
        return None
    if not given and cells.all_numbers:
        return None
    return find_format(cells.stripped, cells.counts, given)


def _number_format(found: InferredFormat | None, draft: Draft) -> NumberFormat | None:
    """Returns the number format of a column. A format `found` in most cells is used if it fits all
    cells, or if the user specified a format or a numeric kind; else the result is None. If no
    format was found, the user's format is returned, or None without one."""
    given, kind = draft.get("number_format"), draft.get("kind")
    if found is not None:
        has_to = given is not None or (kind is not None and kind.is_real)
        return found.format if has_to or found.fits.all() else None
    return None if given is None else completed_format(given)


def _unread_numbers(
    cells: Cells, found: InferredFormat | None, draft: Draft, pointer: str
) -> list[Problem]:
    """Returns [the problem of the first cell that the user's number format cannot read], or []."""
    if "number_format" not in draft or found is None or found.fits.all():
        return []
    expected = f"a number such as {example(found.format)}, or a text named in missing.markers"
    message = "the cell is {}, which is no number of the format"
    place = f"{pointer}/number_format"
    return [cells.problem(~found.fits, message, pointer=place, expected=expected)]


def _separator_warnings(
    cells: Cells, kind: ColumnKind, draft: Draft, found: InferredFormat | None
) -> Iterator[str]:
    """Yields a warning on numbers such as 1,234, whose comma may be the thousands or the decimal
    separator."""
    given = draft.get("number_format") or {}
    if cells.source != "text" or not kind.may_be_numbers or {"decimal", "thousands"} & set(given):
        return
    if cells.number_format is not None:
        if found is not None and found.other is not None:
            yield separator_warning(cells, cells.number_format, found.other)
    elif may_be_grouped(cells.stripped):
        yield separator_warning(cells, NumberFormat(), NumberFormat(",", "."))


# Kinds


def _kind_of_draft(draft: Draft, cells: Cells) -> ColumnKind | None:
    if "datetime_format" in draft:
        return ColumnKind.DATETIME
    if "levels" in draft:
        return _kind_of_levels(draft["levels"])
    if {"minimum", "maximum"} & set(draft) and len(cells.texts) and cells.all_numbers:
        return ColumnKind.INTEGER if are_whole(cells.numerals).all() else ColumnKind.CONTINUOUS
    return None


def _kind_of_levels(levels: tuple[Any, ...]) -> ColumnKind:
    if levels and all(isinstance(level, bool) for level in levels):
        return ColumnKind.BOOLEAN
    numeric = levels and all(isinstance(level, int | float) for level in levels)
    return ColumnKind.ORDINAL if numeric else ColumnKind.CATEGORICAL


def _infer_kind(
    cells: Cells,
    has_missing: bool,
    draft: Draft,
    found: InferredFormat | None,
    warnings: list[str],
) -> ColumnKind:
    if len(cells.texts) == 0:
        warnings.append("has no values and is treated as constant")
        return ColumnKind.CONSTANT
    if len(cells.texts) == 1 and not has_missing:
        return ColumnKind.CONSTANT
    if cells.source == "boolean":
        return ColumnKind.BOOLEAN
    if cells.source == "datetime":
        return ColumnKind.DATETIME
    if cells.all_numbers and not _are_days(cells):
        return _numeric_kind(cells, has_missing, "number_format" in draft, warnings)
    return _text_kind(cells, found, warnings)


def _are_days(cells: Cells) -> bool:
    if cells.source != "text" or len(cells.texts) < 10:
        return False
    found = cells.inferred_date_format
    return found is not None and found[0] == "%Y%m%d"


def _numeric_kind(
    cells: Cells, has_missing: bool, are_amounts: bool, warnings: list[str]
) -> ColumnKind:
    values = cells.numbers
    assert values is not None, "all are numbers"
    n_distinct = _n_distinct(values)
    if n_distinct == 1 and not has_missing:
        return ColumnKind.CONSTANT
    whole = _is_whole(cells, values, has_missing)
    meaning = key_or_quantity(cells, values) if whole and not are_amounts else "quantities"
    if meaning == "keys":
        warnings.append(IDENTIFIER_WARNING)
        return ColumnKind.IDENTIFIER
    if meaning == "undecided":
        warnings.append(UNDECIDED_WARNING)
    if n_distinct < FEW_VALUES and cells.counts.sum() >= ROWS_PER_LEVEL * n_distinct:
        return ColumnKind.ORDINAL
    return ColumnKind.INTEGER if whole else ColumnKind.CONTINUOUS


def _n_distinct(values: npt.NDArray[Any]) -> int:
    """Returns the number of distinct numbers, exact only below FEW_VALUES, which is all that
    callers need."""
    start = len(np.unique(values[: 4 * FEW_VALUES]))
    return start if start >= FEW_VALUES else len(np.unique(values))


def _is_whole(cells: Cells, values: npt.NDArray[Any], has_missing: bool) -> bool:
    """Returns whether the numbers of a column are integers. Floats without a missing cell are not,
    even if they are whole: pandas converts integers to floats only if cells are missing."""
    if cells.source == "float" and not has_missing:
        return False
    if values.dtype.kind == "i":
        return True
    if not ((values == np.floor(values)) & (np.abs(values) < 2**53)).all():
        return False
    zero_decimals = pc.match_substring_regex(cells.numerals, r"^[+-]?[0-9]+\.0+$")
    return bool(pc.all(zero_decimals).as_py())


def _text_kind(cells: Cells, found: InferredFormat | None, warnings: list[str]) -> ColumnKind:
    if boolean_pair(cells.texts) is not None:
        return ColumnKind.BOOLEAN
    if cells.inferred_date_format is not None:
        return ColumnKind.DATETIME
    n_rows, n_levels = int(cells.counts.sum()), len(cells.texts)
    warnings += reasons_for_text(cells, found)
    if are_row_identifiers(cells):
        warnings.append(IDENTIFIER_WARNING + (PHRASES_WARNING if are_phrases(cells) else ""))
        return ColumnKind.IDENTIFIER
    if n_levels > MANY_LEVELS or (n_levels > FEW_VALUES and n_levels > LEVEL_SHARE * n_rows):
        warnings.append(
            f"has {n_levels} categories in {n_rows} rows; those of few rows come out as frequent"
            ' ones or, if they fill most cells, as "(other)"; for new values, declare it an'
            " identifier"
        )
    return ColumnKind.CATEGORICAL
