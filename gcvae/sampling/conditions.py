"""Reads conditions on columns from JSON documents, as regions (sets of possible cells).

    {"sex": "Female", "age": {"min": 30, "max": 40}, "education": ["Masters", "Doctorate"],
     "occupation": null}

A value has the format of the table or of JSON; null is a missing cell. A range applies to numbers,
dates and ordered levels, and includes both ends. "2022", "2022-Q2" and "2022-05" are ranges of
dates, and so is "2022-05-17" in a column with times of day.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import torch

from gcvae.arrays import FIRST_TIME, LAST_TIME, TIMES, Mask, Numbers
from gcvae.cells.distinct_cells import shortened
from gcvae.cells.levels import are_numeric, level_texts, listed_levels
from gcvae.cells.values import END_READERS, format_table, parse_table
from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.column_codecs import LINEAR_CODECS, RealCodec
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.level_codec import LevelCodec
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.rare_levels import OTHER, GroupedLevelCodec
from gcvae.codec.region import Region
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import ConditionError, Problem, TableError, json_pointer
from gcvae.expressions.date_spans import in_utc, span_of
from gcvae.files.row_documents import cell_texts
from gcvae.model.level_functions import LevelFunction
from gcvae.numerics.generators import uniform
from gcvae.rules.alternatives import Alternative
from gcvae.rules.grids import grid_of
from gcvae.rules.residuals import Residual
from gcvae.sampling.dependent_regions import evaluation_rank, rule_regions
from gcvae.sampling.hard_rules import HardRules
from gcvae.sampling.regions import AnyRegion, level_region, number_region
from gcvae.sampling.target_intervals import TargetIntervals
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.schema.rules import Rule
from gcvae.schema.suggestions import NO_SUCH_COLUMN, nearest, unknown_names
from gcvae.spelling.date_text import is_time_of_day

_RANGE = ("min", "max")
_FURTHEST = 2.0**53


@dataclass(frozen=True)
class Condition:
    """A parsed condition that every generated row has to satisfy.

    Attributes:
        regions: The set of possible cells of each modelled column; None without a condition.
        grouped: For conditioned columns in which several (rare) levels share one code, a mask of
            the levels that the condition allows, by column index.
        expected: Text for error messages. It names computed columns, such as a total, for which the
            condition only allows values beyond the column's limits, and gives these limits. None if
            there are no such columns.
        known: One row with the computed columns for which the condition allows a single value.
            These values replace decoded ones, which may differ because formulas round.
        names: Names of the conditioned columns.
    """

    regions: list[AnyRegion | None]
    grouped: dict[int, Mask] = field(default_factory=dict)
    expected: str | None = None
    known: pd.DataFrame = field(default_factory=pd.DataFrame)
    names: tuple[str, ...] = ()

    def with_drawn_levels(
        self, rows: EncodedTable, codec: TableCodec, generator: torch.Generator
    ) -> EncodedTable:
        """Returns encoded rows in which the condition also holds for levels that share a code.

        Where the code of a conditioned cell stands for several levels, one of them is drawn at
        random among those that the condition allows.
        """
        values = rows.values.clone()
        for j, chosen in self.grouped.items():
            column = codec.columns[j]
            assert isinstance(column, GroupedLevelCodec), "others have no members"
            u = uniform((len(rows),), generator, torch.float64).numpy()
            codes = rows.codes[:, j].numpy().astype(np.int64)
            found = column.positions_among(chosen, codes, values[:, j].numpy(), u)
            values[:, j] = torch.from_numpy(found)
        return EncodedTable(rows.codes, values, rows.observed)


def read_condition(
    given: Mapping[str, Any],
    codec: TableCodec,
    order: Sequence[int] | None,
    functions: Sequence[LevelFunction] = (),
) -> Condition:
    """Reads a condition from a JSON document.

    Args:
        given: The document: a value, a list of values or a range for each named column.
        codec: Codec (encoder) of the model's table.
        order: Order in which the decoder generates the columns; None if the model has no order.
        functions: Functional dependencies between codes that the decoder enforces.

    Raises:
        ConditionError: A column is unknown or not modelled, or a value is invalid for its column.
            Every problem has a JSON pointer.
    """
    condition = Condition([None] * len(codec.columns))
    given = dict(sorted(given.items(), key=lambda item: evaluation_rank(codec, item[0])))
    problems = _unknown(given, codec.schema)
    targets: dict[str, TargetIntervals] = {}
    values: dict[str, pd.Series[Any]] = {}  # the only possible ones of their columns
    for name, wanted in given.items():
        if name not in codec.schema:
            continue
        column = codec.schema[name]
        try:
            document = _as_document(wanted, column)
            if name in codec.reduction.rewritten:
                targets[name] = _target(name, document, codec)
            else:
                _add(condition, name, document, given, codec)
            if column.is_modelled and not isinstance(document, list | Mapping | None):
                values[name] = _typed([document], column)
        except ConditionError as error:
            problems.append(_located(error, "given", name))
    values = {name: value for name, value in values.items() if value.notna().all()}
    known = pd.DataFrame(values, index=[0])
    problems += _broken_rules(codec, functions, known, condition) if not problems else []
    blank = {name for name, wanted in given.items() if wanted is None or wanted is pd.NaT}
    cells = known.reindex(columns=list(codec.schema.names))
    broken = None if problems else HardRules(codec.schema, {}).broken_by(cells, blank)
    problems += [] if broken is None else [_broken(broken.column, str(broken))]
    if problems:
        raise ConditionError(*problems)
    found = rule_regions(codec, cells, targets, order or (), may_be_missing=True) if targets else {}
    for j, region in found.items():
        if condition.regions[j] is None:
            condition.regions[j] = region
    limits = ", ".join(_beyond(targets, codec.schema))
    expected = f"{limits}, as in the training table" if limits else None
    fixed = known[[name for name in known if name in targets]]
    return replace(condition, expected=expected, known=fixed, names=tuple(given))


def _beyond(targets: Mapping[str, TargetIntervals], schema: TableSchema) -> Iterator[str]:
    """Yields a text with a column's limits, such as "total from 0 to 120", for each column whose
    allowed values (`targets`) all lie beyond them."""
    for name, target in targets.items():
        grid, limits = grid_of(schema[name]), " ".join(_limits(schema[name]))
        is_within = (target.low <= grid.high) & (target.high >= grid.low)
        if limits and not is_within.any() and not target.missing.any():
            yield f"{name} {limits}"


def _broken_rules(
    codec: TableCodec,
    functions: Sequence[LevelFunction],
    known: pd.DataFrame,
    condition: Condition,
) -> Iterator[Problem]:
    """Yields a problem for each functional dependency and formula without exceptions that the
    condition violates. `known` is one row with the columns for which the condition names a single
    value."""
    for rule in codec.schema.rules or ():
        is_sure = rule.is_dependency and rule.share == 1.0 and rule.keep != "off"
        has_parents = set(rule.parents) <= set(known.columns)
        if is_sure and has_parents and _breaks(rule, codec, functions, known, condition):
            yield _broken(rule.column, str(rule))
    for rewriting in codec.reduction.rewritings:
        if not isinstance(rewriting, Residual | Alternative) or rewriting.rule.share != 1.0:
            continue
        if not {rewriting.column, *rewriting.parents} <= set(known.columns):
            continue
        is_known, is_kept = rewriting.prediction.keeps(known)
        if is_known.all() and not is_kept.all():
            yield _broken(rewriting.column, str(rewriting))


def _broken(column: str, rule: str) -> Problem:
    message = f"the condition breaks a rule that every row of the table keeps: {rule}"
    return Problem(message, json_pointer("given", column), column=column)


def _breaks(
    rule: Rule,
    codec: TableCodec,
    functions: Sequence[LevelFunction],
    known: pd.DataFrame,
    condition: Condition,
) -> bool:
    """Returns whether the condition contradicts a functional dependency: the table has rows with
    the determining cells that the condition names (`known`), but in none of them the dependent
    column has a level that the condition allows."""
    names = [column.name for column in codec.columns]
    for function in functions:
        if [names[j] for j in function.columns] != [*rule.parents, rule.column]:
            continue
        *parents, y = function.columns
        region = condition.regions[y]
        if not isinstance(region, Region) or function.class_counts is not None:
            return False
        codes = [codec.columns[j].encode(known[names[j]])[0][0] for j in parents]
        own = function.pairs[(function.pairs[:, :-1] == codes).all(axis=1), -1]
        is_allowed = ~torch.isneginf(region.log_share[0]).numpy()
        return len(own) > 0 and not is_allowed[own].any()
    return False


def _as_document(wanted: Any, column: Column, end: str | None = None) -> Any:
    """Converts a value, list or range of NumPy or pandas to its form in a JSON document.

    A span of time (a `pandas.Period`, a text such as "2022-05", or a day in a column with times)
    becomes the range of its first and last moment. As the end of a range, the span becomes a single
    moment: the first one if `end` is "min", the last one if `end` is "max".
    """
    if isinstance(wanted, Mapping):
        return {key: _as_document(item, column, key) for key, item in wanted.items()}
    if isinstance(wanted, np.ndarray | pd.Series | pd.Index | tuple | set | frozenset):
        return [_as_document(item, column) for item in pd.Series(list(wanted), dtype=object)]
    if isinstance(wanted, list):
        return [_as_document(item, column) for item in wanted]
    if pd.api.types.is_scalar(wanted) and pd.isna(wanted):
        return None
    if isinstance(wanted, timedelta | np.timedelta64) and column.duration_unit is not None:
        unit = pd.Timedelta(f"1{column.duration_unit}").value
        count = Fraction(pd.Timedelta(wanted).value, unit)
        return int(count) if count.denominator == 1 else float(count)
    if column.datetime_format is not None:
        span = span_of(wanted, column)
        if span is not None:
            ends = dict(zip(_RANGE, (_date_text(time, column) for time in span), strict=True))
            return ends if end is None else ends.get(end, wanted)
    if column.datetime_format is not None and isinstance(wanted, date | np.datetime64):
        time = pd.Timestamp(wanted)
        if time.tzinfo is None:
            time = in_utc(time, column)
        elif column.zone is not None:
            time = time.tz_convert("UTC").tz_localize(None)
        else:
            message = f"{wanted} has a time zone, but the column has none"
            raise _refusal(message, "a time without a zone")
        return _date_text(time, column)
    if isinstance(wanted, time_of_day) and is_time_of_day(column.date_format):
        return _date_text(pd.Timestamp(END_READERS[column.kind](wanted, column)), column)
    if isinstance(wanted, Decimal) and wanted.is_finite():
        return int(wanted) if wanted == wanted.to_integral_value() else float(wanted)
    return wanted.item() if isinstance(wanted, np.generic) else wanted


def _date_text(time: pd.Timestamp, column: Column) -> Any:
    """Returns a time as text in the table's format; unchanged if the format cannot express it."""
    schema = TableSchema((column,))
    frame = pd.DataFrame({column.name: pd.Series([time]).astype(TIMES)})
    text = format_table(frame, schema)
    is_kept = parse_table(text, schema)[column.name].equals(frame[column.name])
    return text[column.name].iloc[0] if is_kept else time


def _unknown(given: Mapping[str, Any], schema: TableSchema) -> list[Problem]:
    known = {column.name for column in schema}
    unknown = [name for name in given if name not in known]
    places = [(name, {"pointer": json_pointer("given", name), "column": name}) for name in unknown]
    return unknown_names(NO_SUCH_COLUMN, places, [c.name for c in schema if c.is_modelled])


def refuse_beyond_limits(typed: pd.DataFrame, codec: TableCodec) -> None:
    """Checks that the numbers and dates of parsed rows lie within their columns' limits.

    Columns that a rule computes are exempt, because their limits follow from those of the rule's
    other columns.

    Raises:
        TableError: A value is beyond its column's limits, so that the model cannot generate it.
    """
    problems = []
    computed = {each.column for each in codec.reduction.rewritings if each.parents}
    for column in codec.schema:
        if not (column.is_modelled and column.kind.is_real) or column.name in computed:
            continue
        try:
            _written(typed[column.name].dropna(), column)
        except ConditionError as error:
            problems.append(_located(error, "row", column.name))
    if problems:
        raise TableError(*problems)


def _refusal(message: str, expected: str | None, suggestion: str | None = None) -> ConditionError:
    """Returns an error without a JSON pointer; the caller, who knows the value's place, adds it."""
    return ConditionError(Problem(message, expected=expected, suggestion=suggestion))


def _located(error: ConditionError, step: str, name: str) -> Problem:
    return replace(error.problems[0], pointer=json_pointer(step, name), column=name)


def _add(
    condition: Condition, name: str, wanted: Any, given: Mapping[str, Any], codec: TableCodec
) -> None:
    """Adds the condition on one column to `condition`."""
    source = codec.copies.get(name, name)
    if source != name and source in given:
        message = f"it equals column {source!r} in every row, of which something is said too"
        raise _refusal(message, "one of the two")
    names = [column.name for column in codec.columns]
    if source not in names:
        _check_constant(name, wanted, codec.schema)
        return
    j = names.index(source)
    column = codec.columns[j]
    items, missing = _listed(wanted, column)
    if isinstance(column, RealCodec | QuantileCodec):
        low, high, missing = _intervals(items, column, missing)
        region = number_region(column, low, high, missing)
        if region is None:
            raise _refusal(f"no number of the column is {_shown(wanted)}", None)
        condition.regions[j] = region
        return
    assert isinstance(column, LevelCodec | GroupedLevelCodec), "numbers or levels"
    chosen, missing = _chosen_levels(items, column, missing)
    condition.regions[j] = level_region(_log_shares(column, chosen, missing))
    if isinstance(column, GroupedLevelCodec):
        condition.grouped[j] = chosen


def _target(name: str, wanted: Any, codec: TableCodec) -> TargetIntervals:
    """Returns the values that a condition allows, as intervals for one row, for a column that the
    model replaces by its residual or by several columns, such as a date by week and weekday."""
    residual = codec.column_codec(name)
    items, missing = _listed(wanted, residual)
    column, grid = codec.schema[name], grid_of(codec.schema[name])
    if codec.reduction.rewritten[name].parents:  # the parents determine its range
        column = replace(column, minimum=None, maximum=None)
    if column.kind.is_real:
        line = LINEAR_CODECS[column.kind](column, residual.has_missing, 0.0, 1.0)
        low, high, missing = _intervals(items, line, missing)
    else:
        levels = LevelCodec(column, residual.has_missing)
        chosen, missing = _chosen_levels(items, levels, missing)
        low = high = pd.Series([level for level, c in zip(levels.levels, chosen, strict=True) if c])
    ends = [grid.indices(cells)[None] if len(cells) else _NO_INDICES for cells in (low, high)]
    if not len(low):
        ends[0] = ends[0] + 1  # an empty interval
    return TargetIntervals(ends[0], ends[1], np.ones(1, dtype=bool), np.full(1, missing))


_NO_INDICES = np.zeros((1, 1), dtype=np.int64)


def _no_level(items: list[Any]) -> str:
    ends = items[0]
    if not isinstance(ends, Mapping):
        return f"no level of the column is {', '.join(map(_shown, items))}"
    low, high = ends.get("min"), ends.get("max")
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        return f"min {low} is above max {high}"
    shown = ", ".join(f"{key} {value}" for key, value in ends.items())
    return f"no level of the column is in the range {shown}"


def _check_constant(name: str, wanted: Any, schema: TableSchema) -> None:
    """Checks a condition on a column that the model does not learn. Raises a ConditionError unless
    the column is constant and the condition names its value."""
    column = schema[name]
    if column.drop:
        raise _refusal("the column is dropped: no row has it", None)
    if column.kind.outcomes is Outcomes.KEYS:
        raise _refusal("the column is an identifier: its values are generated", None)
    value = column.levels[0] if column.levels else None
    if value is None and wanted is not None:
        raise _refusal("the column is blank in every row", "null")
    [text] = cell_texts([wanted], column)
    if wanted != value and text not in (str(value), *level_texts(column)):
        raise _refusal(f"the column is {value!r} in every row", repr(value))


def _listed(wanted: Any, codec: ColumnCodec) -> tuple[list[Any], bool]:
    items = wanted if isinstance(wanted, list) else [wanted]
    if not items:
        raise _refusal("the list is empty", "at least one value")
    has_missing = None in items and _may_be_missing(codec)
    return [item for item in items if item is not None], has_missing


def _may_be_missing(codec: ColumnCodec) -> bool:
    """Returns True if the column had missing cells in training; else raises a ConditionError."""
    if not codec.has_missing:
        raise _refusal("no cell of the column was missing in training", "a value")
    return True


def _typed(items: list[Any], column: Column) -> pd.Series[Any]:
    """Converts values to the dtype of the column."""
    for item in items:
        if isinstance(item, Mapping | list):
            expected = 'a value, a list of values, or {"min": …, "max": …}'
            raise _refusal(f"{_shown(item)} is no value", expected)
    texts = pd.DataFrame({column.name: cell_texts(items, column)}, dtype=object)
    try:
        return parse_table(texts, TableSchema((column,)))[column.name]
    except TableError as error:
        problem = error.problems[0]
        raise _refusal(problem.message, problem.expected) from None


def _is_range(items: list[Any]) -> bool:
    """Returns whether the condition is a range; raises an error if it is an invalid one."""
    if not (len(items) == 1 and isinstance(items[0], Mapping)):
        return False
    ends = items[0]
    if not ends or any(key not in _RANGE for key in ends) or None in ends.values():
        raise _refusal(f"{_shown(ends)} is no range", '{"min": …, "max": …}, or one of both')
    return True


def _intervals(
    items: list[Any], codec: RealCodec | QuantileCodec, missing: bool
) -> tuple[pd.Series[Any], pd.Series[Any], bool]:
    """Returns the intervals that a condition allows: (lower ends, upper ends, whether missing cells
    are included). `items` are values, or one range; `missing` tells whether null is listed."""
    line = codec.line if isinstance(codec, QuantileCodec) else codec
    if not _is_range(items):
        typed = _typed(items, line.column)
        if typed.isna().any():  # a text that stands for a missing value
            missing = missing or _may_be_missing(codec)
            typed = typed[typed.notna()].reset_index(drop=True)
        typed = _written(typed, line.column)
        return typed, typed, missing
    ends = _ends(items[0], line.column)
    if ends is None and not missing:
        raise _refusal(*_empty(items[0], line.column))
    low, high = (pd.Series([end]) for end in ends) if ends else (pd.Series([], dtype=float),) * 2
    return low, high, missing


def _written(typed: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Returns values rounded to the column's decimals; raises an error if one is beyond limits."""
    given = typed
    if typed.dtype == np.float64 and column.decimals is not None:
        with np.errstate(over="ignore"):  # numbers far beyond any column
            typed = given.round(column.decimals)
    is_outside = np.zeros(len(typed), dtype=bool)
    if column.minimum is not None:
        is_outside |= (typed < _end(column.minimum, column, "min")).to_numpy(dtype=bool)
    if column.maximum is not None:
        is_outside |= (typed > _end(column.maximum, column, "max")).to_numpy(dtype=bool)
    if is_outside.any():
        expected = " ".join(["a value", *_limits(column)])
        message = "is beyond the model's limits, which may be wider than the table's"
        raise _refusal(f"{given[is_outside].iloc[0]} {message}", expected)
    return typed


def _limits(column: Column) -> list[str]:
    low, high = column.minimum, column.maximum
    return [f"{word} {end}" for word, end in (("from", low), ("to", high)) if end is not None]


def _ends(wanted: Mapping[str, Any], column: Column) -> tuple[Any, Any] | None:
    """Returns the first and the last value of the column within a range; None if there are none."""
    given = {key: _end(value, column, key) for key, value in wanted.items()}
    first, last = (FIRST_TIME, LAST_TIME) if column.has_times else (-_FURTHEST, _FURTHEST)
    first = first if column.minimum is None else _end(column.minimum, column, "min")
    last = last if column.maximum is None else _end(column.maximum, column, "max")
    low, high = max(first, given.get("min", first)), min(last, given.get("max", last))
    low, high = _on_grid(low, column, np.ceil), _on_grid(high, column, np.floor)
    return (low, high) if low <= high else None


def _empty(wanted: Mapping[str, Any], column: Column) -> tuple[str, str]:
    """Returns (message, expected input) for a range that contains no number of the column."""
    shown = ", ".join(f"{key} {value}" for key, value in wanted.items())
    if len(wanted) == len(_RANGE) and bool(
        _end(wanted["min"], column, "min") > _end(wanted["max"], column, "max")
    ):
        return f"min {wanted['min']} is above max {wanted['max']}", "a min that is no larger"
    limits = _limits(column)
    if column.decimals:
        limits.append(f"of {column.decimals} decimal{'s' * (column.decimals > 1)}")
    message = f"no number of the column is in the range {shown}"
    return message, " ".join(["a range that meets its numbers", *limits])


def _end(value: Any, column: Column, key: str) -> Any:
    try:
        return END_READERS[column.kind](value, column)
    except ValueError as error:
        raise _refusal(f"{key} is {_shown(value)}", str(error)) from None


def _on_grid(end: Any, column: Column, toward: Callable[[Any], Any]) -> Any:
    """Rounds one end of a range to the decimals of the column, with `np.ceil` or `np.floor`, so
    that it stays in the range. Dates are unchanged."""
    if isinstance(end, np.datetime64):
        return end
    if column.kind.is_whole:
        return int(toward(end))
    if column.decimals is None:
        return float(end)
    near = round(end, column.decimals)  # a given number that is already on the grid
    step = 10.0**-column.decimals
    return near if math.isclose(near, end, rel_tol=1e-12) else float(toward(end / step) * step)


def _chosen_levels(
    items: list[Any], codec: LevelCodec | GroupedLevelCodec, missing: bool
) -> tuple[Mask, bool]:
    """Returns (mask of the levels that a condition allows, whether it allows missing cells).
    `items` are levels, or one range; `missing` tells whether null is listed."""
    levels = list(codec.levels)
    if _is_range(items):
        chosen = _levels_between(items[0], codec)
    else:
        chosen = np.zeros(len(levels), dtype=bool)
        typed = _typed(items, codec.column)
        if typed.isna().any():
            missing = missing or _may_be_missing(codec)
        for level in typed[typed.notna()].tolist():
            if level not in levels:
                raise _refusal(*_unknown_level(level, codec))
            chosen[levels.index(level)] = True
    if not chosen.any() and not missing:
        raise _refusal(_no_level(items), listed_levels(codec.column))
    return chosen, missing


def _levels_between(wanted: Mapping[str, Any], codec: LevelCodec | GroupedLevelCodec) -> Mask:
    """Returns a mask of the levels within a range."""
    if codec.column.kind.outcomes is not Outcomes.ORDERED_LEVELS:
        raise _refusal("the column's levels have no order", "a level, or a list of levels")
    places: list[Any] = list(codec.levels)
    if are_numeric(codec.levels):
        ends = {key: _end(value, codec.column, key) for key, value in wanted.items()}
    else:
        texts = [str(level) for level in codec.levels]
        for value in wanted.values():
            if str(value) not in texts:
                raise _refusal(*_unknown_level(value, codec))
        ends = {key: texts.index(str(value)) for key, value in wanted.items()}
        places = list(range(len(texts)))
    low, high = ends.get("min", -math.inf), ends.get("max", math.inf)
    return np.array([low <= place <= high for place in places], dtype=bool)


def _log_shares(codec: LevelCodec | GroupedLevelCodec, chosen: Mask, missing: bool) -> Numbers:
    """Returns for each code the log of the share of its levels that the condition allows: 0 for
    all, -inf for none. Shape: (levels,) -> (codes,)."""
    if isinstance(codec, GroupedLevelCodec):
        log_shares = codec.log_shares(chosen)
    else:
        with_missing = np.concatenate([[False] * codec.has_missing, chosen])
        log_shares = np.where(with_missing, 0.0, -np.inf)
    if codec.has_missing:
        log_shares[0] = 0.0 if missing else -np.inf
    return log_shares


def _unknown_level(
    level: Any, codec: LevelCodec | GroupedLevelCodec
) -> tuple[str, str, str | None]:
    meant = nearest(level, map(str, codec.levels)) if isinstance(level, str) else None
    message = f"there is no level {_shown(level)}"
    if isinstance(codec, GroupedLevelCodec) and codec.withheld.any():
        message += " in the model, which has no levels of few rows"
        if OTHER in codec.levels:
            message, meant = f"{message} but {OTHER!r} for all of them", meant or OTHER
    return message, listed_levels(codec.column), meant


def _shown(value: Any) -> str:
    return shortened(str(value))
