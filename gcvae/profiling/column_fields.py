"""Infers the properties of a column whose kind is known, such as its limits, from its cells, and
checks the properties that the user specified."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import Mask
from gcvae.cells.distinct_cells import Cells, shortened
from gcvae.cells.levels import are_numeric, boolean_pair, boolean_partner, find_levels, read_levels
from gcvae.errors import Problem, SchemaError
from gcvae.profiling.warnings import respelling_warning
from gcvae.rules.grids import Grid
from gcvae.rules.splits import Split, step_of
from gcvae.rules.step_search import with_steps
from gcvae.schema.columns import Bound, Column, Draft, Level
from gcvae.schema.kinds import ColumnKind, Outcomes
from gcvae.spelling.date_text import (
    are_uniform,
    have_finer_digits,
    other_order,
    read_dates,
    second_digits,
    write_dates,
)
from gcvae.spelling.number_formats import example, numerals, read_number
from gcvae.spelling.number_text import Spelling, are_numbers, are_whole, infer_spelling, numbers_of

_ANY_KIND = {"name", "kind", "missing", "drop", "parquet_type", "dtype", "personal"}


@dataclass
class Completion:
    """State of the inference of one column.

    Attributes:
        column: The column so far: name, kind and missing values.
        cells: Cells that are not missing.
        has_missing: Whether the column contains missing cells.
        draft: Properties of the column that the user specified.
        pointer: JSON pointer of these properties in the user's schema; "" if there are none.
        problems: Contradictions between the user's schema and the cells, so far.
        warnings: Data-quality warnings, so far.
    """

    column: Column
    cells: Cells
    has_missing: bool
    draft: Draft
    pointer: str
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def refuse(self, wrong: Mask, message: str, key: str, expected: str) -> bool:
        """Records a problem if a cell is wrong, and returns whether one is.

        `wrong` is the mask of wrong cells among the U distinct ones, of shape (U,). In `message`,
        `{}` is replaced by the first wrong cell. `key` is the property of the user's schema that
        the wrong cell contradicts, such as `minimum`; `expected` describes a valid cell or
        property.
        """
        if wrong.any():
            place = f"{self.pointer}/{key}" if self.pointer else None
            found = self.cells.problem(wrong, message, pointer=place, expected=expected)
            self.problems.append(found)
        return bool(wrong.any())

    def refuse_field(self, message: str, key: str, expected: str | None = None) -> None:
        """Records a problem of the property `key` that the user specified; `expected` describes a
        valid value, if there is one."""
        place = f"{self.pointer}/{key}"
        name = self.column.name
        self.problems.append(Problem(message, place, column=name, expected=expected))


def complete_column(work: Completion) -> Column:
    """Returns the column with all properties of its kind, taken from the user's schema or inferred.
    Problems and warnings are added to `work`."""
    kind = work.column.kind
    for key in sorted(work.draft.keys() - kind.members - _ANY_KIND):
        work.refuse_field(f"{key} does not apply to kind {kind}", key)
    return COMPLETERS[kind](work)


def _complete_real(work: Completion) -> Column:
    whole = work.column.kind.is_whole
    wanted = "a whole number" if whole else "a number"
    wrong = ~work.cells.are_numbers
    number_format = work.cells.number_format
    written = "" if number_format is None else f" such as {example(number_format)}"
    expected = f"{wanted}{written}, or a text named in missing.markers"
    message = f"the kind is {work.column.kind}, but the cell is {{}}"
    if work.refuse(wrong, message, "kind", expected):
        return work.column
    values = work.cells.numbers
    assert values is not None, "all are numbers"
    if whole:
        broken = values != np.floor(values)
        if work.refuse(broken, message, "kind", expected + ", or kind continuous"):
            return work.column
    column = replace(work.column, **_spelling_fields(work))
    low, high = (_limit(work, values, key) for key in ("minimum", "maximum"))
    return _with_steps(work, replace(column, minimum=low, maximum=high), values)


def _with_steps(work: Completion, column: Column, values: npt.NDArray[Any]) -> Column:
    """Returns the column with its `steps`, the spacings of its values such as 1 and 0.05, and
    `endings`, remainders that its cells have in common such as .99.

    If the user's steps and endings do not fit all cells, the column's resolution becomes a further
    step. If `work` has problems, the column is returned unchanged.
    """
    if work.problems:
        return column
    draft, series = work.draft, pd.Series(values.astype(column.kind.dtype))
    if "steps" not in draft and "endings" not in draft:
        return with_steps(series, work.cells.codes, column)
    given = replace(column, steps=draft.get("steps"), endings=draft.get("endings"))
    try:
        split = Split.of(given)
    except SchemaError as error:
        place = f"{work.pointer}/{'steps' if 'steps' in draft else 'endings'}"
        work.problems += [replace(problem, pointer=place) for problem in error.problems]
        return column
    if split is None or not split.has_ending:
        return given
    left = split.reduced(series.to_frame(column.name), blanks_unknown=False)
    are_kept = left[split.part_names[-1]] == split.ending
    return given if are_kept.all() else _with_grid(given, split.grid)


def _with_grid(column: Column, grid: Grid) -> Column:
    """Appends the column's resolution, the spacing of `grid`, to its steps (spacings of the cells,
    largest first). Every cell is then a multiple of the last step.

    In a column of dates, endings (remainders after division by the last step, such as 23:59:59) are
    removed, because the new last step leaves no remainder. The ending "month end" stays.
    """
    endings = [text for text in column.endings or () if text == "month end" or grid.step is None]
    steps = list(column.steps or ())
    if steps == ["1 month"] and grid.step is not None:
        steps.append("1 day")
    unit = step_of(1, grid)
    steps += [unit] if steps[-1:] != [unit] else []
    return replace(column, steps=tuple(steps), endings=tuple(endings) or None)


def _spelling_fields(work: Completion) -> dict[str, Any]:
    """Returns the properties that describe how numbers are written, such as `decimals`: as the user
    specified, else as in the cells."""
    cells, draft = work.cells, work.draft
    is_whole = work.column.kind.is_whole
    spelling = Spelling(0)
    if len(cells.texts):
        spelling = infer_spelling(cells.numerals, whole=is_whole)
    come_back = cells.source != "text" or cells.as_numerals_are_written.equals(cells.texts)
    if not (spelling.exact and come_back):
        work.warnings.append(respelling_warning(work.cells))
    decimals: int | None = draft.get("decimals", spelling.decimals)
    most = spelling.decimals
    if decimals is not None and "decimals" in draft and (most is None or decimals < most):
        found = "more" if most is None else most
        message = f"decimals is {decimals}, but the cells have {found}"
        work.refuse_field(message, "decimals", f"at least {found}")
    if is_whole and decimals == 0:
        decimals = None
    fields = _number_fields(spelling, work)
    is_padded = draft.get("padded", spelling.padded and decimals == spelling.decimals)
    return fields | {"decimals": decimals, "padded": is_padded}


def _limit(work: Completion, values: npt.NDArray[Any], key: str) -> Bound | None:
    """Returns the limit `key`, "minimum" or "maximum", that the user specified as a number or as a
    text in the format of the cells. Without it, returns the smallest or largest of `values`; None
    if there are no values."""
    found = (values.min() if key == "minimum" else values.max()).item() if len(values) else None
    if work.column.kind.is_whole and found is not None:
        found = int(found)
    given = work.draft.get(key)
    if given is None:
        return found
    if isinstance(text := given, str):
        given = read_number(text, work.cells.number_format)
    if given is None:
        work.refuse_field(f"{key} is the text {text!r}", key, "a number")
        return found
    beyond = values < given if key == "minimum" else values > given
    bound = "at most" if key == "minimum" else "at least"
    expected = f"{bound} {found}, or no {key}"
    work.refuse(beyond, f"{key} is {given}, but the cell is {{}}", key, expected)
    return given


def _complete_datetime(work: Completion) -> Column:
    texts, draft = work.cells.texts, work.draft
    date_format = draft.get("datetime_format") or work.cells.date_format or _detected_format(work)
    if date_format is None:
        return work.column
    times = work.cells.times(date_format)
    message = f"the date format is {date_format}, but the cell is {{}}"
    expected = "a date of that format, or a text named in missing.markers"
    if work.refuse(np.isnat(times), message, "datetime_format", expected):
        return work.column
    if work.cells.is_cut or have_finer_digits(texts):
        work.warnings.append("has times finer than microseconds, whose further digits are cut off")
    digits = second_digits(texts, date_format) if len(texts) else 0
    column = replace(
        work.column,
        datetime_format=date_format,
        decimals=draft.get("decimals", digits or None),
    )
    low, high = (_date_limit(work, times, date_format, key) for key in ("minimum", "maximum"))
    return _with_steps(work, replace(column, minimum=low, maximum=high), times)


def _detected_format(work: Completion) -> str | None:
    texts = work.cells.texts
    if not len(texts):
        return "%Y-%m-%d"
    found = work.cells.inferred_date_format
    if found is None:
        work.refuse_field(
            f"the kind is datetime, but no one format fits all cells, the first {_first(texts)}",
            "kind",
            'datetime_format, as strptime has it, such as "%d.%m.%Y"',
        )
        return None
    if other := other_order(texts, found[0]):
        work.warnings.append(
            f"is read as {found[0]}, though {other} fits every cell too: no day is beyond 12, so"
            " the order of day and month is assumed; if it is the other, give that datetime_format"
        )
    if century := re.search("%([0-9]{4})y", found[0]):
        first = int(century[1])
        work.warnings.append(
            f"has years of two digits, which are read as {first} to {first + 99}; if others are"
            f" meant, give the datetime_format {found[0]!r} with another first year"
        )
    if not are_uniform(texts, found[0]):
        written = write_dates(work.cells.times(found[0])[:1], *found)[0]
        work.warnings.append(
            "has times of several offsets from UTC, or with and without digits of a second: they"
            f" are read as the moments that they are, and all are written like {written.as_py()!r}"
        )
    return found[0]


def _first(texts: pa.Array) -> str:
    return shortened(texts[0].as_py())


def _date_limit(
    work: Completion, times: npt.NDArray[Any], date_format: str, key: str
) -> Bound | None:
    if not len(times):
        return work.draft.get(key)
    index = int(times.argmin() if key == "minimum" else times.argmax())
    found = work.cells.texts[index].as_py()
    given = work.draft.get(key)
    if given is None:
        return found  # type: ignore[no-any-return]
    limit = read_dates(pa.array([str(given)]), date_format)[0]
    if np.isnat(limit):
        work.refuse_field(f"{key} is {given!r}", key, f"a date of the format {date_format}")
        return found  # type: ignore[no-any-return]
    beyond = times < limit if key == "minimum" else times > limit
    bound = "at most" if key == "minimum" else "at least"
    expected = f"{bound} {found}, or no {key}"
    work.refuse(beyond, f"{key} is {given}, but the cell is {{}}", key, expected)
    return given  # type: ignore[no-any-return]


def _complete_levels(work: Completion) -> Column:
    cells, given = work.cells, work.draft.get("levels")
    spelled = _number_spelling(work)
    if given is None:
        as_float = cells.source == "float" and not work.has_missing
        levels = find_levels(cells.numerals if spelled else cells.texts, spelled, as_float)
        is_ordered = work.column.kind.outcomes is Outcomes.ORDERED_LEVELS
        if is_ordered and levels and not are_numeric(levels):
            work.warnings.append("is ordinal and has no levels given; they are taken in text order")
        return replace(work.column, levels=levels, **_number_fields(spelled, work))
    levels = tuple(_levels_as_cells(given, spelled is not None, cells))
    fields = _number_fields(spelled if are_numeric(levels) else None, work)
    column = replace(work.column, levels=levels, **fields)
    known = set(levels)
    unlisted = np.array([x not in known for x in read_levels(column, cells)], dtype=bool)
    shown = ", ".join(map(repr, levels[:20])) + (", ..." if len(levels) > 20 else "")
    expected = f"one of {shown}, or no levels" if levels else "at least one level"
    work.refuse(unlisted, "the cell is {}, which is no listed level", "levels", expected)
    return column


def _number_spelling(work: Completion) -> Spelling | None:
    """Returns how numeric levels are written; None if the levels are strings."""
    cells = work.cells
    if not len(cells.texts) or not cells.all_numbers:
        return None
    spelling = infer_spelling(cells.numerals, whole=bool(are_whole(cells.numerals).all()))
    if spelling.exact and cells.as_numerals_are_written.equals(cells.texts):
        return spelling
    if work.column.kind.outcomes is Outcomes.NOMINAL_LEVELS:
        return None
    work.warnings.append(respelling_warning(work.cells))
    return spelling


def _number_fields(spelling: Spelling | None, work: Completion) -> dict[str, Any]:
    if spelling is None:
        return {}
    draft = work.draft
    return {
        "decimals": draft.get("decimals", spelling.decimals or None),
        "padded": draft.get("padded", spelling.padded),
        "notation": draft.get("notation", spelling.notation),
        "number_format": work.cells.number_format,
    }


def _levels_as_cells(given: tuple[Level, ...], numeric: bool, cells: Cells) -> list[Level]:
    if numeric and not are_numeric(given):
        texts = pa.array([str(level) for level in given], pa.string())
        if cells.number_format is not None:
            texts = numerals(texts, cells.number_format)
        if are_numbers(texts).all():
            return numbers_of(texts).tolist()  # type: ignore[no-any-return]
    if cells.source == "float" and are_numeric(given):
        return [float(level) for level in given]
    return list(given)


def _complete_boolean(work: Completion) -> Column:
    given = work.draft.get("levels")
    levels = _boolean_levels(work) if given is None else _spelled_booleans(given, work.cells)
    if levels is None or len(levels) != 2:
        work.refuse_field(
            "the kind is boolean, but the cells are not two known words"
            if given is None
            else f"a boolean has two levels, not {len(given)}",
            "levels",
            "two levels, the false one first",
        )
        return work.column
    column = replace(work.column, levels=levels)
    read = read_levels(column, work.cells)
    unlisted = np.array([not isinstance(x, bool) for x in read], dtype=bool)
    expected = f"{levels[0]!r} or {levels[1]!r}"
    work.refuse(unlisted, "the cell is {}, which is no listed level", "levels", expected)
    return column


def _boolean_levels(work: Completion) -> tuple[Level, ...] | None:
    cells = work.cells
    if cells.source == "boolean":
        return (False, True)
    found = set(cells.stripped.to_pylist())
    if found <= {"0", "1"}:
        return (0, 1)
    stripped = pa.array(sorted(found), pa.string())
    return boolean_partner(stripped[0].as_py()) if len(found) == 1 else boolean_pair(stripped)


def _spelled_booleans(given: tuple[Level, ...], cells: Cells) -> tuple[Level, ...]:
    """Returns the two levels of a boolean column, that for false first: the user's levels,
    or the words in the cells, such as no and yes, if the user's levels are False and True."""
    false_first = _false_first(given)
    if cells.source == "boolean" or not all(isinstance(level, bool) for level in given):
        return false_first
    pair = boolean_pair(cells.stripped)
    return pair if pair is not None and len(given) == 2 else false_first


def _false_first(given: tuple[Level, ...]) -> tuple[Level, ...]:
    """Sorts two levels such as yes and no, or 1 and 0, so that the one that means false is first.
    Levels that do not mean true and false keep their order."""
    texts = [str(level) for level in given]
    pair = ("0", "1") if set(texts) == {"0", "1"} else boolean_pair(pa.array(texts, pa.string()))
    return given if pair is None else tuple(given[texts.index(text)] for text in pair)


def _complete_identifier(work: Completion) -> Column:
    cells = work.cells
    whole = len(cells.texts) > 0 and _are_whole_numbers(cells)
    return replace(work.column, decimals=work.draft.get("decimals", 0 if whole else None))


def _are_whole_numbers(cells: Cells) -> bool:
    """Returns whether all cells are whole numbers without spaces and plus signs."""
    if pc.any(pc.starts_with(cells.texts, "+")).as_py():
        return False
    if cells.numerals is cells.texts:
        return cells.numbers is not None and cells.numbers.dtype == np.int64
    return bool(are_numbers(cells.texts).all()) and numbers_of(cells.texts).dtype == np.int64


def _complete_constant(work: Completion) -> Column:
    work = _with_one_spelling(work)
    cells = work.cells
    spelled = _number_spelling(work) if len(cells.texts) == 1 else None
    column = replace(work.column, **_number_fields(spelled, work))
    if not len(cells.texts):
        return replace(column, levels=work.draft.get("levels"))
    if work.has_missing or len(cells.texts) > 1:
        other = np.arange(len(cells.texts)) > 0
        work.refuse(other, f"the kind is constant, but beside {_first(cells.texts)} there is {{}}",
                    "kind", "one value in every row")  # fmt: skip
        if not other.any():
            work.refuse_field("the kind is constant, but some cells are missing", "kind")
        return column
    if cells.source == "boolean":
        return replace(column, levels=(cells.texts[0].as_py() == "True",))
    if cells.source == "datetime":
        return replace(column, levels=(cells.texts[0].as_py(),), datetime_format=cells.date_format)
    texts = cells.numerals if spelled else cells.texts
    return replace(column, levels=find_levels(texts, spelled, cells.source == "float"))


def _with_one_spelling(work: Completion) -> Completion:
    """Keeps only the most frequent cell if all cells are the same number, written in different ways
    such as 0 and -0, because a constant column has one value."""
    cells = work.cells
    if len(cells.texts) < 2 or cells.numbers is None:
        return work
    if len(np.unique(cells.numbers)) > 1:
        return work
    work.warnings.append(respelling_warning(work.cells))
    most_frequent = np.arange(len(cells.texts)) == cells.counts.argmax()
    return replace(work, cells=cells.select(most_frequent))


COMPLETERS: dict[ColumnKind, Callable[[Completion], Column]] = {
    ColumnKind.CONTINUOUS: _complete_real,
    ColumnKind.INTEGER: _complete_real,
    ColumnKind.DATETIME: _complete_datetime,
    ColumnKind.ORDINAL: _complete_levels,
    ColumnKind.CATEGORICAL: _complete_levels,
    ColumnKind.BOOLEAN: _complete_boolean,
    ColumnKind.IDENTIFIER: _complete_identifier,
    ColumnKind.CONSTANT: _complete_constant,
}
