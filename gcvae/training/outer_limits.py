"""Rounds the minima and maxima of a model's columns, to disclose no values of single rows.

The schema of a dataset contains the exact minimum and maximum of its cells. Because a model may be
shared, its schema has a round number or date beyond each minimum or maximum that few rows have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import TIMES, Codes
from gcvae.cells.grid_units import microseconds
from gcvae.codec.quantile_codec import are_all_atoms
from gcvae.files.typed_columns import TypedTable
from gcvae.numerics.isolated_values import without_isolated
from gcvae.numerics.outward import PARTS, OuterRows, exact, plain_limits, plain_number
from gcvae.rules.splits import Split
from gcvae.schema.columns import Bound, Column, TableSchema
from gcvae.schema.parquet_types import parquet_type
from gcvae.spelling.date_text import is_time_of_day, read_dates, write_dates
from gcvae.spelling.number_text import LARGEST_WHOLE

_LENGTHS = {"Y": 365 * 86_400, "M": 30 * 86_400, "D": 86_400, "h": 3600, "m": 60, "s": 1}
"""Approximate seconds of the units to which dates are rounded."""
_MOST = {"Y": 1000, "M": 1, "D": 20, "h": 1, "m": 20, "s": 20}
"""Maximum multiple of each unit to which dates are rounded."""
_LARGEST = Decimal(repr(float(np.finfo(np.float64).max)))
Given = Mapping[str, Any] | TableSchema | None


def with_outer_limits(
    schema: TableSchema, table: TypedTable, given: Given, rows: int, *, with_atoms: bool
) -> TableSchema:
    """Returns the schema with limits rounded outward, so that they disclose no single row's value.
    A minimum or maximum that at least `rows` rows share is not rounded.

    All cells of the table are within the new limits. Limits that the user specified are unchanged.

    Args:
        table: Table with cells converted to the dtypes of the schema.
        given: The user's schema. A `TableSchema` does not show which limits were inferred; a limit
            in it counts as inferred if it equals the cells' minimum or maximum.
        rows: Number of rows that have to share a minimum or maximum for it to be disclosed.
        with_atoms: Whether the model stores the values of columns with few distinct numbers; their
            limits are then not rounded.
    """
    columns = [
        _with_limits(column, table[column.name].dropna(),
                     declared(column.name, given), rows, with_atoms=with_atoms)
        if column.is_modelled and column.kind.is_real and rows > 1 else column
        for column in schema
    ]  # fmt: skip
    return replace(schema, columns=tuple(columns))


def declared(name: str, given: Given) -> Mapping[str, Any] | None:
    """Returns the properties of a column that the user specified; {} if there are none. Returns
    None if `given` is a `TableSchema`, which does not show which properties were inferred."""
    if isinstance(given, TableSchema):
        return None
    columns = (given or {}).get("columns") or ()
    return next((column for column in columns if column.get("name") == name), {})


def _with_limits(
    column: Column,
    present: pd.Series[Any],
    declared: Mapping[str, Any] | None,
    rows: int,
    *,
    with_atoms: bool,
) -> Column:
    """Returns the column with limits rounded outward, except for limits that the user specified.

    A frequent value far from all others, such as -9999, does not affect how coarsely the opposite
    limit is rounded.
    """
    times = column.has_times
    cells = present.to_numpy(dtype=TIMES if times else column.kind.dtype)
    distinct_numbers, counts = np.unique(
        cells.astype(np.int64) if times else cells, return_counts=True
    )
    if not len(distinct_numbers) or (with_atoms and are_all_atoms(counts)):
        return column
    rest, outer = without_isolated(distinct_numbers, counts), _dates if times else _numbers
    low, high = outer(column, distinct_numbers[rest], counts[rest], rows)
    far_low, far_high = outer(column, distinct_numbers, counts, rows)
    low, high = (
        far_low if rest.start else low,
        far_high if rest.stop < len(distinct_numbers) else high,
    )
    ends = {"minimum": (low, distinct_numbers[0]), "maximum": (high, distinct_numbers[-1])}
    open_ends: dict[str, Any] = {
        key: bound
        for key, (bound, extreme) in ends.items()
        if (_is_cell_limit(column, key, extreme) if declared is None else declared.get(key) is None)
    }
    changed = {key: bound for key, bound in open_ends.items() if bound != getattr(column, key)}
    return _at_unit_boundaries(replace(column, **changed), changed)


def _at_unit_boundaries(column: Column, changed: Mapping[str, Any]) -> Column:
    """Returns the column with changed limits moved to multiples of the column's coarsest unit. Any
    other limit would clip generated cells to values that are not multiples of the unit."""
    split = Split.of(column) if changed else None
    if split is None:
        return column
    ends = dict(zip(("minimum", "maximum"), split.whole_limits(), strict=True))
    whole: dict[str, Any] = {
        key: _text(column, ends[key]) if column.has_times else ends[key].item() for key in changed
    }
    return replace(column, **whole)


def _is_cell_limit(column: Column, key: str, extreme: Any) -> bool:
    """Returns whether a limit of a column, `minimum` or `maximum` (`key`), may have been inferred:
    whether it is None or equals the minimum or maximum of the cells (`extreme`)."""
    limit = getattr(column, key)
    if limit is None or not column.has_times:
        return limit is None or bool(limit == extreme)
    return _microseconds(column, limit) == int(extreme)


# Numbers


def _numbers(
    column: Column, distinct_numbers: npt.NDArray[Any], counts: Codes, rows: int
) -> tuple[Bound, Bound]:
    """Returns the minimum and the maximum of ascending distinct numbers. Each is rounded outward,
    within the range of the column's types, unless at least `rows` rows have it."""
    whole = column.kind.is_whole
    decimals = 0 if whole else column.decimals
    unit = Decimal(0) if decimals is None else Decimal(1).scaleb(-decimals)
    least, most = _type_range(column)
    low, high = plain_limits(distinct_numbers, counts, rows, unit)
    low = max(low, min(least, exact(distinct_numbers[0])))
    high = min(high, max(most, exact(distinct_numbers[-1])))
    return (int(low), int(high)) if whole else (float(low), float(high))


def _type_range(column: Column) -> tuple[Decimal, Decimal]:
    largest = Decimal(LARGEST_WHOLE) if column.kind.is_whole else _LARGEST
    least, most = -largest, largest
    for low, high in _ranges_of_types(column):
        least, most = max(least, low), min(most, high)
    return least, most


def _ranges_of_types(column: Column) -> list[tuple[Decimal, Decimal]]:
    """Returns the ranges of the column's dtype and Parquet type, as (smallest, largest) number;
    types without a limited range are left out."""
    dtype = (column.dtype or "").lower()
    kind = None if column.parquet_type is None else parquet_type(column.parquet_type)
    whole = [dtype] if dtype.startswith(("int", "uint")) else []
    if kind is not None and pa.types.is_integer(kind):
        whole.append(kind.to_pandas_dtype())
    limits: list[Any] = [np.iinfo(name) for name in whole]
    ends = [(Decimal(int(each.min)), Decimal(int(each.max))) for each in limits]
    if kind is not None and pa.types.is_decimal(kind):
        most = Decimal(10**kind.precision - 1).scaleb(-kind.scale)
        ends.append((-most, most))
    return ends


# Dates


def _dates(
    column: Column, distinct_numbers: npt.NDArray[Any], counts: Codes, rows: int
) -> tuple[Bound | None, Bound | None]:
    """Returns the minimum and the maximum of ascending distinct times (microseconds since 1970) as
    text in the column's format. Each is rounded outward unless at least `rows` rows have it."""
    ends = OuterRows.of(distinct_numbers, counts, rows)
    low, high = column.minimum, column.maximum
    if ends.low_size is not None:
        low = _rounded_outward(column, ends.low, ends.low_size, above=False)
    if ends.high_size is not None:
        high = _rounded_outward(column, ends.high, ends.high_size, above=True)
    return low, high


def _rounded_outward(column: Column, end: int, size: Decimal, *, above: bool) -> Bound:
    """Returns the minimum or maximum of a column's times, rounded outward, in the column's format.

    A minimum is rounded to the first moment of the period of time, such as a month, that contains
    it, and a maximum to the last moment. If the column's format or dtype cannot represent this
    moment, shorter periods are tried. If none of them is possible, `end` is not rounded.

    Args:
        end: The minimum or maximum, in microseconds since 1970.
        size: Twenty times the approximate length of the period, in microseconds (see `OuterRows`).
        above: Whether `end` is the maximum.
    """
    written = column.date_format
    step = microseconds(column)
    for unit, number in _units(written, size):
        first = np.array([end], dtype=TIMES).astype(f"datetime64[{unit}]")
        first = first.astype(np.int64) // number * number + (number if above else 0)
        time = first.astype(f"datetime64[{unit}]").astype(TIMES)
        time = time - np.timedelta64(step if above else 0, "us")
        text = _text(column, time[0])
        back = _microseconds(column, text)
        if back is not None and (back >= end if above else back <= end) and _fits(column, time):
            return text
    return _text(column, np.datetime64(end, "us"))


def _fits(column: Column, times: npt.NDArray[np.datetime64]) -> bool:
    """Returns whether the dtype and Parquet type of the column can represent the times."""
    is_in_nanoseconds = "[ns" in f"{column.dtype} {column.parquet_type}"
    near = times.astype("datetime64[ns]").astype(TIMES)
    return not is_in_nanoseconds or bool((near == times).all())


def _text(column: Column, time: Any) -> str:
    times = np.array([time]).astype(TIMES)
    texts = write_dates(times, column.date_format, column.decimals)
    return str(texts[0].as_py())


def _units(written: str, size: Decimal) -> list[tuple[str, int]]:
    """Returns the periods of time to which dates may be rounded, as (unit, number of units).

    The periods become shorter. The first one is about a twentieth of `size` microseconds. `written`
    is the format of the dates. If it contains no days, such as a format of months or years, the
    first period is at least two years.
    """
    wanted = size / (PARTS * 10**6)
    is_coarse = "%d" not in written.replace("%-", "%") and not is_time_of_day(written)
    units = []
    for unit, length in _LENGTHS.items():
        if wanted >= length or (is_coarse and unit == "Y") or unit == "s":
            number = int(plain_number(max(wanted / length, Decimal(2 if is_coarse else 1))))
            units.append((unit, min(number, _MOST[unit])))
    return units


def _microseconds(column: Column, text: Any) -> int | None:
    """Returns a limit in microseconds since 1970; None if it cannot be parsed by the format."""
    time = read_dates(pa.array([str(text)]), column.date_format)[0]
    return None if np.isnat(time) else int(time.astype(np.int64))
